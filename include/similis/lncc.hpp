// SPDX-License-Identifier: Apache-2.0
// Local normalised cross-correlation (LNCC): the correlation of two images under a small window,
// whatever their contrast and brightness. Deformable registration maximises it.
//
//   LNCC = clamp((A² + nr) / (B·C + dr), -1, 1)
//   A = k·(E[xy] - E[x]E[y]),  B = max(k·(E[x²] - E[x]²), dr),  C likewise of y
//
// with E the average under the window, k the number of its taps, nr = smooth_nr·k and
// dr = smooth_dr·k. B. B. Avants, C. L. Epstein, M. Grossman, J. C. Gee, "Symmetric diffeomorphic
// image registration with cross-correlation", Medical Image Analysis 12(1), 2008; the smoothing as
// MONAI and FireANTs have it.
#pragma once

#include <cstdint>

#include "similis/api.h"
#include "similis/execution.hpp"
#include "similis/gradient.hpp"
#include "similis/tensor.hpp"
#include "similis/window.hpp"

namespace similis {

enum class LnccGradient : std::uint8_t {
  exact,  ///< the derivative of the returned value
  ants,   ///< the term of each pixel's own window, with constant means, as in ANTs; not for
          ///< `is_signed`
};

/// The memory that an exact gradient takes on a GPU beyond itself. Results are the same.
enum class LnccWorkspace : std::uint8_t {
  automatic,  ///< up to 16 B a pixel for the gradient to each image, if that is at most 1 GiB in
              ///< all; otherwise as small
  small,  ///< a twelfth of a byte a pixel for dense f32 and f64 gradients under windows of up to
          ///< 7 × 7, since derivatives are stored in the gradient; 2 B for f16 and bf16. Up to
          ///< 64 MiB for images of up to 8 million pixels, wider windows and other gradients
};

struct LnccOptions {
  PerAxis<int> window_size = 3;  ///< in pixels, odd
  WindowShape window = WindowShape::box;
  PerAxis<double> sigma = 1.5;      ///< standard deviation of a Gaussian window, in pixels
  Padding padding = Padding::same;  ///< same, renormalize or valid
  Reduction reduction = Reduction::mean;
  double smooth_nr = 1e-5;  ///< nr / k, in fourth powers of pixel values
  double smooth_dr = 1e-5;  ///< dr / k; windows flat in both score about smooth_nr / smooth_dr
  bool is_signed = false;  ///< signed correlation in [-1, 1]: clamp(A / (√B·√C), -1, 1) instead,
                           ///< which tells x from -x
  LnccGradient gradient = LnccGradient::exact;
  LnccWorkspace workspace = LnccWorkspace::automatic;
  /// Weights on the map, one per pixel, finite and not negative: the mean becomes Σ mask·LNCC /
  /// Σ mask and the sum Σ mask·LNCC; a map is multiplied by it. Any dtype; [H,W] or [D,H,W] with or
  /// without leading N and C, broadcast; with padding valid its rim goes unused. If the weights of
  /// a mean add up to 0, LNCC is NaN and a loss 0, both with gradient 0. A negative weight or a
  /// NaN is refused on the CPU; on a GPU it makes value and gradient NaN.
  TensorView mask = {};
  /// Weights m of the pixels, shaped as mask is; 0 leaves a pixel out, which then may hold
  /// anything, NaN included, and has gradient 0. Averages become E[m·x] / E[m]. Means and sums run
  /// over the pixels with m > 0, weighted by mask if it is given and by m otherwise; a map is NaN
  /// at the others. With padding same the zeros outside have m = 1.
  TensorView valid_mask = {};
  /// The centres of the windows that count: of part of a larger image. All rows that these windows
  /// see must be given, and no others; padding acts where the given rows end, at the image's own
  /// ends. A map has these rows alone.
  RowRange rows = {};
  /// True: value is [2,N,C] in f64, the Σ weight·LNCC and the Σ weight of each channel. Sums of
  /// parts add up to those of the image, and `reduction` is not read.
  bool sums = false;
};

/// Local normalised cross-correlation of x and y: from 0 to 1, or from -1 if signed; 1 if one is a
/// multiple of the other plus a constant, up to smoothing. Window sums are f64.
/// x, y: [N,C,H,W] or [N,C,D,H,W]; of any dtype on the CPU, on a GPU u8, f16, bf16, f32 or f64;
/// alike in all but their strides.
/// Returns f32 (f64 for f64 and i32) on their device: a scalar, [N], [N,C] or a map, as reduction
/// says; a map is smaller than the image by window_size - 1 with padding valid and as large
/// otherwise. On a GPU work is queued on exec.queue and not waited for. Throws InvalidArgument if x
/// and y are not alike or have no elements, window_size is even, 1 along every axis or above 65535,
/// sigma or smooth_dr is not positive, smooth_nr is negative, padding is reflect or replicate, or
/// valid and an axis is shorter than window_size, gradient is ants and is_signed, or a mask does
/// not broadcast or, on the CPU, holds a weight that is negative or not finite.
SIMILIS_API Tensor lncc(const TensorView& x, const TensorView& y, const LnccOptions& options = {},
    const Execution& exec = {});

/// -LNCC, which registration minimises.
SIMILIS_API Tensor lncc_loss(const TensorView& x, const TensorView& y,
    const LnccOptions& options = {}, const Execution& exec = {});

/// The value of lncc() and the gradient of its sum over all results, in one pass.
/// Takes and throws what lncc() does, and refuses u8, which has no gradient.
SIMILIS_API ValueAndGradient lncc_value_and_gradient(const TensorView& x, const TensorView& y,
    GradientOf wrt = GradientOf::x, const LnccOptions& options = {}, const Execution& exec = {});

SIMILIS_API ValueAndGradient lncc_loss_value_and_gradient(const TensorView& x, const TensorView& y,
    GradientOf wrt = GradientOf::x, const LnccOptions& options = {}, const Execution& exec = {});

/// The gradient of Σ upstream·lncc(x, y): upstream has the shape of lncc's result and any float
/// dtype. The value is left empty. Nothing saved by a forward pass is needed.
SIMILIS_API ValueAndGradient lncc_backward(const TensorView& x, const TensorView& y,
    const TensorView& upstream, GradientOf wrt = GradientOf::x, const LnccOptions& options = {},
    const Execution& exec = {});

/// The results of one pass, in memory of the caller; empty views are not computed.
struct LnccRequest {
  double weight = 1;           ///< multiplies LNCC: -1 for the loss; below 0 nothing is 0
  TensorView upstream = {};    ///< multiplies the gradients; shaped as value. Empty: 1
  TensorView value = {};       ///< dense; f32 or f64; a map f64 for f64 and i32 images alone
  TensorView x_gradient = {};  ///< any strides but 0; the images' dtype
  TensorView y_gradient = {};
};

/// The pass behind all functions of this header: for bindings and callers with memory of their own.
/// Throws also if a view of the request has the wrong shape, dtype or device.
/// Exact gradients take a workspace on a GPU, as LnccOptions::workspace says; others take none.
SIMILIS_API void lncc_into(const TensorView& x, const TensorView& y, const LnccRequest& request,
    const LnccOptions& options = {}, const Execution& exec = {});

}  // namespace similis
