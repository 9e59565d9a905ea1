// SPDX-License-Identifier: Apache-2.0
// The cut of integer SSIM on the CPU. A stripe of rows is a task. A chunk is a row of a tile: its
// terms are examined together, and chunks are added up in raster order.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/libvmaf_ssim/libvmaf_ssim.h"

namespace similis::libvmaf_ssim_internal {

// The ring of a tile's products fits the first-level cache (20 KB of 8-bit samples); its windows
// reach 8 columns into its neighbours.
constexpr std::int64_t kTileColumns = 128;
// Each stripe begins with 8 rows that only its windows see, 2 % of its work.
constexpr std::int64_t kStripeRows = 32;

struct IntegerPlan {
  explicit IntegerPlan(const PlanePairs& pairs)
      : planes(pairs),
        tiles((pairs.width() + kTileColumns - 1) / kTileColumns),
        stripes((pairs.height() + kStripeRows - 1) / kStripeRows) {}

  std::int64_t first_row(std::int64_t stripe) const { return stripe * kStripeRows; }
  std::int64_t rows(std::int64_t stripe) const {
    return std::min(kStripeRows, planes.height() - first_row(stripe));
  }
  std::int64_t chunks(std::int64_t stripe) const { return rows(stripe) * tiles; }

  PlanePairs planes;
  std::int64_t tiles, stripes;
};

/// A chunk of one pair's plane.
struct ChunkPlace {
  std::int64_t pair, row, tile;
};

/// The running sum as far as it is known, and over how many pixels that is.
struct KnownSum {
  double sum = 0;
  std::int64_t pixels = 0;
};

}  // namespace similis::libvmaf_ssim_internal
