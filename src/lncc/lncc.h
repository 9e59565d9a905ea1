// SPDX-License-Identifier: Apache-2.0
// One pass of LNCC over a pair of images, as lncc.cc hands it to a backend once everything about it
// is checked and resolved.
#pragma once

#include <cstdint>

#include "similis/lncc.hpp"
#include "src/core/operation.h"
#include "src/lncc/formula.h"
#include "src/window/window.h"

namespace similis::lncc_internal {

/// Images are 5-D here, [N,C,D,H,W]; 2-D ones have D = 1 and a window of 1 along it. With v the
/// correlation at a pixel, the pass computes value = reduce(weight·v) and the gradients of
/// Σ upstream·value. A mean without weights is NaN, or 0 for a loss, both with gradient 0; a map is
/// NaN where valid_mask is 0.
struct Pass {
  TensorView x, y;
  TensorView mask, valid_mask;  ///< 5-D with stride 0 where broadcast; empty if none
  /// A box's taps are 1, so that sums of integers are exact; a Gaussian's sum to 1.
  Window window;
  bool is_box = true;
  double taps = 1;  ///< k, how many the window has
  Padding padding = Padding::same;
  Reduction reduction = Reduction::mean;
  Constants<double> constants = {0, 0};
  bool is_signed = false;
  LnccGradient gradient = LnccGradient::exact;
  LnccWorkspace workspace = LnccWorkspace::automatic;
  double weight = 1;

  /// True: value is [2,N,C], sums and their weights, f64; reduction is then per_channel, and
  /// upstream [N,C] is that of the sums.
  bool sums = false;
  /// The pixels that windows may be centred on. Every row of the images is seen by one of them.
  CountedPixels counted;

  TensorView value;     ///< dense: [], [N], [N,C] or the map [N,C,D',H',W']; empty if not wanted
  TensorView upstream;  ///< shaped as value, any float dtype and strides; empty is 1
  TensorView x_gradient, y_gradient;  ///< 5-D, any strides; empty if not wanted

  bool is_loss() const { return weight < 0; }
  /// True if results are sums, not divided by their weights.
  bool adds_up() const { return sums || reduction == Reduction::sum; }
  bool has_gradient() const { return !x_gradient.empty() || !y_gradient.empty(); }
};

void lncc_cpu(const Pass& pass, const Execution& exec);
/// On pass.x.device, queued on exec.queue and not waited for.
void lncc_cuda(const Pass& pass, const Execution& exec);

extern const Operation<Pass> kLncc;

/// Shape of the map: the image's, less window_size - 1 along each axis with padding valid.
Extents map_shape(const Pass& pass);

}  // namespace similis::lncc_internal
