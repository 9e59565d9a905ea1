// SPDX-License-Identifier: Apache-2.0
// What the tiles of a pass on the CPU share, and what each adds to the results.
#pragma once

#include <vector>

#include "src/ssim/ssim.h"
#include "src/window/axis.h"
#include "src/window/piece.h"

namespace similis::ssim_internal {

/// What a tile adds to its plane's results.
struct TileSums {
  double term = 0;       ///< Σ weight·(1 - SSIM) over its centres
  double l1 = 0;         ///< Σ weight·|x - y| over its pixels
  double weight = 0;     ///< Σ weight over its centres
  double l1_weight = 0;  ///< Σ weight over its pixels
};

struct Plan {
  const Pass& pass;
  Axis z, y, x;
  /// Of the windows centred on each pixel along each axis: below 1 where renormalize cuts them.
  std::vector<double> window_weight_z, window_weight_y, window_weight_x;
  /// For each plane (image·channels + channel): what a unit of 1 - SSIM, and of |x - y|, at a pixel
  /// of weight 1 adds to Σ upstream·value. Unused where the result is a map.
  std::vector<double> term_slope, l1_slope;
};

}  // namespace similis::ssim_internal
