// SPDX-License-Identifier: Apache-2.0
// Differences of pixels without a window: mean squared error, mean absolute error, and the peak
// signal-to-noise ratio 10·log10(data_range² / MSE) in decibels.
#pragma once

#include <optional>

#include "similis/api.h"
#include "similis/execution.hpp"
#include "similis/gradient.hpp"
#include "similis/reduction.hpp"
#include "similis/tensor.hpp"

namespace similis {

struct PixelErrorOptions {
  Reduction reduction = Reduction::mean;  ///< mean, sum, per_image or per_channel
  /// Weights of the pixels, finite and not negative: the mean becomes Σ mask·error / Σ mask and the
  /// sum Σ mask·error. A pixel of weight 0 may hold anything, NaN included, and has gradient 0. Any
  /// dtype; shaped as x, with N and C left out or 1 where it is the same for all. If the weights of
  /// a mean add up to 0, it is NaN, with gradient 0. A negative weight or a NaN is refused on
  /// the CPU; on a GPU value and gradient are NaN.
  TensorView mask = {};
};

/// Mean squared error of x and y, in squared units of a pixel.
/// x, y: [N,C,…] of any rank from 2 to 8; any dtype, but i16, i32 and boolean on the CPU alone;
/// alike in all but their strides. Returns f32 (f64 for f64 and i32 images) on their device; sums
/// are kept in f64. Throws InvalidArgument if x and y are not alike or have no elements, reduction
/// is none, or the mask does not broadcast or, on the CPU, holds a weight that is negative or not
/// finite.
SIMILIS_API Tensor mse(const TensorView& x, const TensorView& y,
    const PixelErrorOptions& options = {}, const Execution& exec = {});

/// Mean absolute error of x and y, in units of a pixel; takes and returns the same as mse().
SIMILIS_API Tensor mae(const TensorView& x, const TensorView& y,
    const PixelErrorOptions& options = {}, const Execution& exec = {});

struct PsnrOptions {
  std::optional<double> data_range = {};  ///< empty: as in SsimOptions
  Reduction reduction = Reduction::mean;  ///< over squared errors, before the logarithm; not sum
  TensorView mask = {};                   ///< as in PixelErrorOptions
};

/// Peak signal-to-noise ratio of x and y in dB, infinite if equal; takes and returns the same as
/// mse().
SIMILIS_API Tensor psnr(const TensorView& x, const TensorView& y, const PsnrOptions& options = {},
    const Execution& exec = {});

/// The value and the gradient of its sum over all results, in one pass over the images. Refuses
/// integer images, which have no gradient. |x - y| has gradient 0 at 0.
SIMILIS_API ValueAndGradient mse_value_and_gradient(const TensorView& x, const TensorView& y,
    GradientOf wrt = GradientOf::x, const PixelErrorOptions& options = {},
    const Execution& exec = {});
SIMILIS_API ValueAndGradient mae_value_and_gradient(const TensorView& x, const TensorView& y,
    GradientOf wrt = GradientOf::x, const PixelErrorOptions& options = {},
    const Execution& exec = {});

/// The results of one pass, in memory of the caller; empty views are not computed.
struct PixelErrorRequest {
  TensorView upstream = {};    ///< multiplies the gradients; shaped as value, f32 or f64. Empty: 1
  TensorView value = {};       ///< dense; f32 or f64, whatever the images' dtype
  TensorView x_gradient = {};  ///< any strides without overlap; the images' dtype
  TensorView y_gradient = {};
};

/// The pass behind mse() and its gradient: for bindings and callers with memory of their own.
/// Throws also if a view of the request has the wrong shape, strides, dtype or device.
SIMILIS_API void mse_into(const TensorView& x, const TensorView& y,
    const PixelErrorRequest& request, const PixelErrorOptions& options = {},
    const Execution& exec = {});
SIMILIS_API void mae_into(const TensorView& x, const TensorView& y,
    const PixelErrorRequest& request, const PixelErrorOptions& options = {},
    const Execution& exec = {});
/// value: dense; f32 or f64, whatever the images' dtype.
SIMILIS_API void psnr_into(const TensorView& x, const TensorView& y, const TensorView& value,
    const PsnrOptions& options = {}, const Execution& exec = {});

}  // namespace similis
