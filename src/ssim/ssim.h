// SPDX-License-Identifier: Apache-2.0
// One pass of SSIM over a pair of images, as ssim.cc hands it to a backend once everything about it
// is checked and resolved.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "similis/ssim.hpp"
#include "src/core/operation.h"
#include "src/ssim/formula.h"
#include "src/window/halving.h"
#include "src/window/window.h"

namespace similis::ssim_internal {

/// The quantity in the map: MS-SSIM takes the contrast and structure term alone at its finer
/// levels.
enum class Term : std::uint8_t { ssim, contrast };

/// Images are 5-D here, [N,C,D,H,W]; 2-D ones have D = 1 and a window of 1 along it. With
/// m = 1 - SSIM (or 1 - cs) at a pixel, the pass computes
///   value = reduce(bias + term_weight·m + l1_weight·|x - y|)
/// where bias is 1 and term_weight negative for a similarity, and bias 0 for a loss; and the
/// gradients of Σ upstream·value. A mean without weights is `of_nothing`, with gradient 0; a map is
/// NaN where valid_mask is 0.
struct Pass {
  TensorView x, y;
  /// True if x holds x + y and y holds x - y, as halved images do on a GPU: f32 keeps both then.
  bool of_sums = false;
  TensorView mask, valid_mask;  ///< 5-D with stride 0 where broadcast; empty if none
  Window window;
  Padding padding = Padding::valid;
  Reduction reduction = Reduction::mean;
  Term term = Term::ssim;
  double c1 = 0, c2 = 0;
  double bias = 0, term_weight = 1, l1_weight = 0;
  /// The mean if its weights add up to 0: NaN for a similarity, 0 for a loss. If it is 0, the term
  /// beside it, |x - y| of pixels that weigh something, still counts.
  double of_nothing = 0;

  /// True: value is [2,N,C], or [4,N,C] with an L1 term: sums and their weights, f64; reduction is
  /// then per_channel, upstream [N,C] is that of the first sums and l1_upstream that of |x - y|'s.
  bool sums = false;
  /// The pixels that windows may be centred on, and that an L1 term takes. Every row of the images
  /// is seen by a window that counts.
  CountedPixels counted;

  TensorView value;        ///< dense: [], [N], [N,C] or the map [N,C,D',H',W']; empty if not wanted
  TensorView upstream;     ///< shaped as value, any float dtype and strides; empty is 1
  TensorView l1_upstream;  ///< read with sums
  /// [N,C] in f32, dense: what kernels of volumes shift x and y by, in place of a voxel of these.
  /// Empty if none.
  TensorView middle;
  TensorView x_gradient, y_gradient;  ///< 5-D, any strides; empty if not wanted
  /// On the CPU, the gradients that the next coarser level of MS-SSIM sends back: of the halved
  /// images, dense, f32 or f64. Each pixel's gradient gets its share of the coarse one as it is
  /// written. Empty if none.
  TensorView coarse_x_gradient, coarse_y_gradient;
  /// On a GPU, if uses_sliding_window(): where x + y and x - y go, halved along both sides, which
  /// are then even; f32 in rows of unit stride. Empty if nowhere.
  TensorView halved_sum, halved_difference;
  /// On a GPU, a number that is 0 when the pass begins, so that it need not clear one. Null if
  /// none.
  unsigned* counter = nullptr;
  std::array<Halving, 3> halving = {
      Halving::none(), Halving::none(), Halving::none()};  ///< z, y, x

  /// True if results are sums, not divided by their weights.
  bool adds_up() const { return sums || reduction == Reduction::sum; }
};

void ssim_cpu(const Pass& pass, const Execution& exec);
/// On pass.x.device, queued on exec.queue and not waited for.
void ssim_cuda(const Pass& pass, const Execution& exec);
/// Through Vulkan, on the images' device, or on that of exec.queue if they are on the CPU: the
/// results are then there when it returns. Throws DeviceError for a pass that it has no kernels
/// for.
void ssim_vulkan(const Pass& pass, const Execution& exec);

/// True if ssim_cuda() runs this pass in f32, through kernels that can halve images on the way.
bool uses_sliding_window(const Pass& pass);

/// C1 and C2, from options that are checked.
Constants<double> constants_of(
    const char* operation, std::optional<double> data_range, double k1, double k2, DType dtype);

extern const Operation<Pass> kSsim;

/// Shape of the map: the image's, less window_size - 1 along each axis with padding valid.
Extents map_shape(const Pass& pass);

}  // namespace similis::ssim_internal
