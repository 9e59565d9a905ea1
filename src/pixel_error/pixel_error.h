// SPDX-License-Identifier: Apache-2.0
// A pass that adds up an error of each pixel, as pixel_error.cc hands it to a backend once
// everything about it is checked.
#pragma once

#include <cstdint>

#include "similis/execution.hpp"
#include "src/core/operation.h"
#include "src/core/pixel_pass.h"

namespace similis::pixel_error_internal {

enum class Error : std::uint8_t { squared, absolute };

/// The number of a pixel is d² or |d|, d = x - y.
void pixel_error_cpu(Error error, const PixelPass& pass, const Execution& exec);

/// The same on the images' GPU, queued on exec.queue.
void pixel_error_cuda(Error error, const PixelPass& pass, const Execution& exec);

/// The same through Vulkan, on the images' GPU, or on that of exec.queue if they are on the CPU:
/// the results are then there when it returns. Throws DeviceError for a pass that it has no kernels
/// for.
void pixel_error_vulkan(Error error, const PixelPass& pass, const Execution& exec);

extern const Operation<PixelPass> kMse, kMae;

/// A mean squared error, as kMse's pass, and the PSNR that it becomes.
struct PsnrPass {
  PixelPass error;  ///< its value is f64
  double data_range;
  TensorView value;
};
extern const Operation<PsnrPass> kPsnr;

/// PSNR of a mean squared error, in decibels.
void decibels_cpu(const TensorView& error, double data_range, const TensorView& value);
void decibels_cuda(
    const TensorView& error, double data_range, const TensorView& value, const Execution& exec);
void decibels_vulkan(
    const TensorView& error, double data_range, const TensorView& value, const Execution& exec);

}  // namespace similis::pixel_error_internal
