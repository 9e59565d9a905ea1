// SPDX-License-Identifier: Apache-2.0
// Multi-scale SSIM: SSIM's contrast and structure at several scales, its luminance at the coarsest.
//
//   MS-SSIM = Π_{l<L} mean(cs_l)^w_l · mean(SSIM_L)^w_L
//
// Z. Wang, E. P. Simoncelli, A. C. Bovik, "Multi-scale structural similarity for image quality
// assessment", Asilomar 2003. The means are of each channel of each image.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "similis/api.h"
#include "similis/execution.hpp"
#include "similis/gradient.hpp"
#include "similis/ssim.hpp"
#include "similis/tensor.hpp"
#include "similis/window.hpp"

namespace similis {

/// The halving of an image between levels: averages of 2×2 (2×2×2) pixels, and at odd sides:
enum class Downsample : std::uint8_t {
  vainf,  ///< a rim of zeros on both sides, counted in the average (pytorch-msssim)
  ceil,   ///< the last row or column is repeated (MATLAB, TensorFlow, piqa)
  floor,  ///< the last row or column is left out (torchmetrics)
  piq,    ///< if any side is odd, a row and a column are repeated at the top and left (piq)
};

struct MsSsimOptions {
  std::optional<double> data_range = {};  ///< as in SsimOptions
  PerAxis<int> window_size = 11;
  PerAxis<double> sigma = 1.5;
  double k1 = 0.01;
  double k2 = 0.03;
  Padding padding = Padding::valid;       ///< applied to each level
  Reduction reduction = Reduction::mean;  ///< over the values of all channels; none is refused
  std::vector<double> weights = {0.0448, 0.2856, 0.3001, 0.2363, 0.1333};  ///< finest level first
  Downsample downsample = Downsample::vainf;
  /// Weights of the pixels, finite and not negative, shaped as SsimOptions::mask. Each level halves
  /// them as it halves the images, and weighs its map by them: a channel's means become Σ mask·cs /
  /// Σ mask and Σ mask·SSIM / Σ mask. A channel whose weights add up to 0 at some level, which a
  /// mask of small parts does with padding valid, is NaN (a loss 0), with gradient 0; means and
  /// sums over channels leave it out. A negative weight or a NaN is refused on the CPU; on a GPU
  /// value and gradient are NaN.
  TensorView mask = {};
};

/// MS-SSIM of x and y: in [0, 1]; 1 if equal. A negative mean of cs or SSIM counts as 0, since its
/// power has no real value: the product and its gradient are 0 then.
/// x, y: [N,C,H,W] or [N,C,D,H,W]; of any dtype on the CPU, on a GPU u8, f16, bf16, f32 or f64;
/// alike in all but their strides.
/// Returns f32 (f64 for f64 and i32) on their device: a scalar, [N] or [N,C], as reduction says.
/// Workspace: the smaller levels of both images, in f64 on the CPU, and three numbers a channel;
/// with gradients, those of the smaller levels too. On a GPU the work is queued on exec.queue and
/// not waited for. Throws InvalidArgument as ssim() does, if weights is empty, longer than 16 or
/// holds a negative number, if reduction is none, or if padding is valid and the coarsest level is
/// smaller than the window; the message names the smallest size.
SIMILIS_API Tensor ms_ssim(const TensorView& x, const TensorView& y,
    const MsSsimOptions& options = {}, const Execution& exec = {});

/// 1 - MS-SSIM, computed so that it keeps its relative precision as the images become equal.
SIMILIS_API Tensor ms_ssim_loss(const TensorView& x, const TensorView& y,
    const MsSsimOptions& options = {}, const Execution& exec = {});

/// The value and the gradient of its sum over all results. Refuses u8, which has no gradient.
SIMILIS_API ValueAndGradient ms_ssim_value_and_gradient(const TensorView& x, const TensorView& y,
    GradientOf wrt = GradientOf::x, const MsSsimOptions& options = {}, const Execution& exec = {});

SIMILIS_API ValueAndGradient ms_ssim_loss_value_and_gradient(const TensorView& x,
    const TensorView& y, GradientOf wrt = GradientOf::x, const MsSsimOptions& options = {},
    const Execution& exec = {});

/// The gradient of Σ upstream·ms_ssim(x, y); upstream has the shape of the result.
SIMILIS_API ValueAndGradient ms_ssim_backward(const TensorView& x, const TensorView& y,
    const TensorView& upstream, GradientOf wrt = GradientOf::x, const MsSsimOptions& options = {},
    const Execution& exec = {});

/// The results of one call, in memory of the caller; empty views are not computed.
struct MsSsimRequest {
  SsimRequest::Form form = SsimRequest::Form::similarity;
  TensorView upstream = {};
  TensorView value = {};
  TensorView x_gradient = {};
  TensorView y_gradient = {};
};

SIMILIS_API void ms_ssim_into(const TensorView& x, const TensorView& y,
    const MsSsimRequest& request, const MsSsimOptions& options = {}, const Execution& exec = {});

}  // namespace similis
