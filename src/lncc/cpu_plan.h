// SPDX-License-Identifier: Apache-2.0
// The plan that the tiles of a pass on the CPU share, and the sums that each tile returns.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "src/lncc/lncc.h"
#include "src/window/axis.h"
#include "src/window/piece.h"

namespace similis::lncc_internal {

/// Sums over one tile, from which the results of its plane's group are made.
struct TileSums {
  double correlation = 0;  ///< Σ weight·v over its centres
  double weight = 0;       ///< Σ weight over its centres

  void operator+=(const TileSums& other) {
    correlation += other.correlation;
    weight += other.weight;
  }
};

struct Plan {
  explicit Plan(const Pass& whole);

  TileSums unmasked_weights(std::size_t groups) const;
  void add_slopes(double upstream, const TileSums& weights);
  double value(const TileSums& sums) const;
  std::array<double, 2> sums_of(const TileSums& sums) const {
    return {pass.weight * sums.correlation, sums.weight};
  }

  const Pass& pass;
  Axis z, y, x;
  /// Σ taps of the window centred on each pixel along each axis: fewer where renormalize cuts it.
  std::vector<double> window_weight_z, window_weight_y, window_weight_x;
  /// For each plane (image·channels + channel): the derivative of Σ upstream·value by v at a pixel
  /// of weight 1. Unused where the result is a map.
  std::vector<double> slope;
};

}  // namespace similis::lncc_internal
