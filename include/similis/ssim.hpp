// SPDX-License-Identifier: Apache-2.0
// Structural similarity (SSIM) of two images under a Gaussian window or a box.
//
//   SSIM = (2 μx μy + C1)(2 σxy + C2) / ((μx² + μy² + C1)(σx² + σy² + C2))
//
// with C1 = (k1·data_range)², C2 = (k2·data_range)² and μ, σ² and σxy the means, variances and
// covariance under the window. Z. Wang, A. C. Bovik, H. R. Sheikh, E. P. Simoncelli, "Image quality
// assessment: from error visibility to structural similarity", IEEE TIP 13(4), 2004.
#pragma once

#include <cstdint>
#include <optional>

#include "similis/api.h"
#include "similis/execution.hpp"
#include "similis/gradient.hpp"
#include "similis/tensor.hpp"
#include "similis/window.hpp"

namespace similis {

struct SsimOptions {
  std::optional<double> data_range = {};  ///< largest minus smallest value a pixel can take; empty:
                                          ///< 1 for floats and booleans, 255 for u8, 65535 for
                                          ///< u16; i16 and i32 need one
  PerAxis<int> window_size = 11;          ///< in pixels, odd
  WindowShape window = WindowShape::gaussian;
  PerAxis<double> sigma = 1.5;  ///< standard deviation of a Gaussian window, in pixels
  double k1 = 0.01;             ///< C1 = (k1·data_range)² steadies the quotient of means
  double k2 = 0.03;             ///< C2 = (k2·data_range)² steadies that of variances
  /// Variances and covariance times n / (n - 1), n the number of pixels in a whole window, as of a
  /// sample; scikit-image's default. It equals a k2 that is smaller by √(n / (n - 1)).
  bool sample_covariance = false;
  Padding padding = Padding::valid;
  Reduction reduction = Reduction::mean;
  /// Weights on the map, one per pixel, finite and not negative: the mean becomes Σ mask·S / Σ mask
  /// and the sum Σ mask·S; a map is multiplied by it. Any dtype; [H,W] or [D,H,W] with or without
  /// leading N and C, broadcast; with padding valid its rim goes unused. If the weights of a
  /// mean add up to 0, SSIM is NaN and a loss 0, both with gradient 0. A negative weight or a NaN
  /// is refused on the CPU; on a GPU it makes value and gradient NaN.
  TensorView mask = {};
  /// Weights m of the pixels, shaped as mask is; 0 leaves a pixel out, which then may hold
  /// anything, NaN included, and has gradient 0. Averages become Σ G·m·x / Σ G·m. Means and sums
  /// run over the pixels with m > 0, weighted by mask if it is given and by m otherwise; a map is
  /// NaN at the others. With padding same the zeros outside have m = 1.
  TensorView valid_mask = {};
  /// The centres of the windows that count: of part of a larger image. All rows that these windows
  /// see must be given, and no others; padding acts where the given rows end, at the image's own
  /// ends. An L1 term takes pixels in these rows. A map has these rows alone.
  RowRange rows = {};
  /// True: value is [2,N,C] in f64, the Σ weight·SSIM and the Σ weight of each channel; [4,N,C]
  /// with an L1 term, whose two sums follow. Sums of parts add up to those of the image, and
  /// `reduction` is not read. Sums are multiplied by ssim_weight and l1_weight.
  bool sums = false;
};

/// Structural similarity of x and y: at most 1; 1 if equal.
/// x, y: [N,C,H,W] or [N,C,D,H,W]; of any dtype on the CPU, on a GPU u8, f16, bf16, f32 or f64;
/// alike in all but their strides.
/// Returns f32 (f64 for f64 and i32) on their device: a scalar, [N], [N,C] or a map, as reduction
/// says; a map is smaller than the image by window_size - 1 with padding valid and as large
/// otherwise. On a GPU work is queued on exec.queue and not waited for. Throws InvalidArgument if x
/// and y are not alike or have no elements, window_size is even or above 65535, sample_covariance
/// is set and the window is one pixel, sigma or data_range is not positive, k1 or k2 is negative,
/// padding is valid and an axis is shorter than window_size, padding is reflect and an axis is not
/// longer than window_size / 2, or a mask does not broadcast or, on the CPU, holds a weight that is
/// negative or not finite.
SIMILIS_API Tensor ssim(const TensorView& x, const TensorView& y, const SsimOptions& options = {},
    const Execution& exec = {});

/// 1 - SSIM, computed as such: keeps its relative precision as the images become equal.
SIMILIS_API Tensor ssim_loss(const TensorView& x, const TensorView& y,
    const SsimOptions& options = {}, const Execution& exec = {});

/// The value of ssim() and the gradient of its sum over all results, in one pass.
/// Takes and throws what ssim() does, and refuses u8, which has no gradient.
SIMILIS_API ValueAndGradient ssim_value_and_gradient(const TensorView& x, const TensorView& y,
    GradientOf wrt = GradientOf::x, const SsimOptions& options = {}, const Execution& exec = {});

SIMILIS_API ValueAndGradient ssim_loss_value_and_gradient(const TensorView& x, const TensorView& y,
    GradientOf wrt = GradientOf::x, const SsimOptions& options = {}, const Execution& exec = {});

/// The gradient of Σ upstream·ssim(x, y): upstream has the shape of ssim's result and any float
/// dtype. The value is left empty. Nothing saved by a forward pass is needed.
SIMILIS_API ValueAndGradient ssim_backward(const TensorView& x, const TensorView& y,
    const TensorView& upstream, GradientOf wrt = GradientOf::x, const SsimOptions& options = {},
    const Execution& exec = {});

/// The results of one pass, in memory of the caller; empty views are not computed.
struct SsimRequest {
  enum class Form : std::uint8_t { similarity, loss };
  Form form = Form::similarity;
  double l1_weight = 0;      ///< adds l1_weight·|x - y|, reduced as the map is, over all pixels
  double ssim_weight = 1;    ///< multiplies SSIM, or 1 - SSIM in a loss
  TensorView upstream = {};  ///< multiplies the gradients; shaped as value. Empty: 1
  /// [N,C], f32, dense: half of x + y at about the middle of each channel. A GPU sums the moments
  /// of volumes in f32 about it. Parts of a volume that are given one middle have the rounding
  /// errors of one call for all of it. Empty: that of x and y. It changes nothing else.
  TensorView middle = {};
  TensorView value = {};       ///< dense; f32 or f64; a map f64 for f64 and i32 images alone
  TensorView x_gradient = {};  ///< any strides but 0; the images' dtype
  TensorView y_gradient = {};
};

/// The pass behind all functions of this header: for bindings and callers with memory of their own.
/// Throws also if a view of the request has the wrong shape, dtype or device.
SIMILIS_API void ssim_into(const TensorView& x, const TensorView& y, const SsimRequest& request,
    const SsimOptions& options = {}, const Execution& exec = {});

struct L1SsimOptions {
  double weight = 0.2;  ///< the weight of 1 - SSIM; the L1 term has 1 - weight
  SsimOptions ssim = {};
};

/// (1 - weight)·mean|x - y| + weight·(1 - SSIM), the loss of 3D Gaussian splatting, in one pass.
/// The mean of |x - y| runs over all pixels, weighted by the masks as SSIM's is. Takes and throws
/// what ssim() does; reduction none needs a padding other than valid.
SIMILIS_API Tensor l1_ssim(const TensorView& x, const TensorView& y,
    const L1SsimOptions& options = {}, const Execution& exec = {});

SIMILIS_API ValueAndGradient l1_ssim_value_and_gradient(const TensorView& x, const TensorView& y,
    GradientOf wrt = GradientOf::x, const L1SsimOptions& options = {}, const Execution& exec = {});

}  // namespace similis
