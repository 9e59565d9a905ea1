// SPDX-License-Identifier: Apache-2.0
// What the tiles of a pass on the CPU share, and what each adds to the results.
#pragma once

#include <vector>

#include "src/lncc/lncc.h"
#include "src/window/axis.h"
#include "src/window/piece.h"

namespace similis::lncc_internal {

/// What a tile adds to its plane's results.
struct TileSums {
  double correlation = 0;  ///< Σ weight·v over its centres
  double weight = 0;       ///< Σ weight over its centres
};

struct Plan {
  const Pass& pass;
  Axis z, y, x;
  /// Σ taps of the window centred on each pixel along each axis: fewer where renormalize cuts it.
  std::vector<double> window_weight_z, window_weight_y, window_weight_x;
  /// For each plane (image·channels + channel): what a unit of v at a pixel of weight 1 adds to
  /// Σ upstream·value. Unused where the result is a map.
  std::vector<double> slope;
};

}  // namespace similis::lncc_internal
