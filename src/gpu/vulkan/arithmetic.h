// SPDX-License-Identifier: Apache-2.0
// The arithmetic of a device that has IEEE's bits: found by running it, not by what the driver
// says.
#pragma once

#include <string>

namespace similis::gpu::vulkan {

class Gpu;

struct Arithmetic {
  bool uses_device_fma = false;      ///< else f32's fused multiply-add runs in integers
  bool uses_device_doubles = false;  ///< else f64 runs in integers
  std::string problem;  ///< the reason why exact kernels are refused; empty if they are not
};

/// Runs about a million hard cases of each operation. SIMILIS_VULKAN_TEST, a list of words joined
/// by commas, changes what is found: `integer_fma` and `integer_f64` leave the device's own aside;
/// `wrong_fma`, `wrong_f64`, `wrong_quotient`, `wrong_sum` and `wrong_integers` make results wrong
/// before they are compared, as on a device that rounds so. Throws InvalidArgument for other words.
Arithmetic probe(Gpu& gpu);

/// "exact by the device's fused multiply-add and doubles", or why the device is refused.
std::string verdict(const Arithmetic& arithmetic);

}  // namespace similis::gpu::vulkan
