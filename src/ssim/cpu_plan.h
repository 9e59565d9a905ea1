// SPDX-License-Identifier: Apache-2.0
// The plan that the tiles of a pass on the CPU share, and the sums that each tile returns.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "src/ssim/ssim.h"
#include "src/window/axis.h"
#include "src/window/piece.h"

namespace similis::ssim_internal {

/// Sums over one tile, from which the results of its plane's group are made.
struct TileSums {
  double term = 0;       ///< Σ weight·(1 - SSIM) over its centres
  double l1 = 0;         ///< Σ weight·|x - y| over its pixels
  double weight = 0;     ///< Σ weight over its centres
  double l1_weight = 0;  ///< Σ weight over its pixels

  void operator+=(const TileSums& other) {
    term += other.term;
    l1 += other.l1;
    weight += other.weight;
    l1_weight += other.l1_weight;
  }
};

struct Plan {
  explicit Plan(const Pass& whole);

  TileSums unmasked_weights(std::size_t groups) const;
  void add_slopes(double upstream, const TileSums& weights);
  double value(const TileSums& sums) const;
  /// Those of each term, and their weights.
  std::array<double, 4> sums_of(const TileSums& sums) const;

  const Pass& pass;
  Axis z, y, x;
  Tile counted;  ///< pixels that an L1 term takes
  /// Weight of the window centred on each pixel along each axis: below 1 where renormalize cuts it.
  std::vector<double> window_weight_z, window_weight_y, window_weight_x;
  /// For each plane (image·channels + channel): the derivatives of Σ upstream·value by 1 - SSIM and
  /// by |x - y| at a pixel of weight 1. Unused where the result is a map.
  std::vector<double> term_slope, l1_slope;
};

}  // namespace similis::ssim_internal
