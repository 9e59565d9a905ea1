// SPDX-License-Identifier: Apache-2.0
// Gaussian smoothing of images and vector fields, in 2D and 3D.
//
//   smooth(x)(p) = Σ_k t_k x(p + k) along each spatial axis,  t_k = exp(-k²/2σ²) / Σ_j exp(-j²/2σ²)
//
// with |k| ≤ r, r = truncate·σ rounded to the nearest whole number (halves away from 0).
#pragma once

#include <cstdint>

#include "similis/api.h"
#include "similis/execution.hpp"
#include "similis/tensor.hpp"
#include "similis/window.hpp"

namespace similis {

/// The values outside the image.
enum class SmoothPadding : std::uint8_t {
  replicate,  ///< those of the outermost voxel
  zeros,
};

struct SmoothOptions {
  PerAxis<double> sigma = 1;  ///< in voxels; 0 leaves an axis as it is
  bool field = false;   ///< x is a vector field: its components are smoothed, its last axis is not
  double truncate = 3;  ///< radius of the taps in standard deviations
  SmoothPadding padding = SmoothPadding::replicate;
};

/// x smoothed along every spatial axis. x: an image [N,C,Y,X] or [N,C,Z,Y,X], or with `field` a
/// vector field [N,Y,X,2] or [N,Z,Y,X,3]; f16, bf16, f32 or f64, any strides.
/// Returns x's shape and dtype on its device. Sums are f32, or f64 for f64, rounded once at the
/// end. Any number of threads gives the same bits. A NaN reaches the voxels under the taps.
/// Workspace: on the CPU 4 B per element for f16 and bf16; on a GPU 4 B per element (8 for f64, and
/// twice that for a radius above 32) where more than one kernel runs.
/// Throws InvalidArgument if x has another shape or dtype, sigma or truncate is negative, a radius
/// is above 65535, or x is on a Vulkan device.
SIMILIS_API Tensor smooth(
    const TensorView& x, const SmoothOptions& options = {}, const Execution& exec = {});

/// The gradient of Σ upstream·smooth(x) by x, which is the adjoint of smooth() applied to upstream.
SIMILIS_API Tensor smooth_backward(
    const TensorView& upstream, const SmoothOptions& options = {}, const Execution& exec = {});

struct SmoothRequest {
  TensorView output = {};  ///< shaped as x, any float dtype and strides but 0; may be x itself
  bool adjoint = false;    ///< smooth_backward() of x in place of smooth()
};

/// The call behind both: for bindings and callers with memory of their own. Throws also if output
/// does not fit.
SIMILIS_API void smooth_into(const TensorView& x, const SmoothRequest& request,
    const SmoothOptions& options = {}, const Execution& exec = {});

}  // namespace similis
