// SPDX-License-Identifier: Apache-2.0
// The pieces into which the passes of float_ssim are cut on the CPU, and their results. The cut
// depends on the planes alone, and so does the order of all sums.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/libvmaf_ssim/float/plane.h"

namespace similis::libvmaf_ssim_internal {

// The ring of averages across (28 KB) fits the first-level cache, or nearly; a tile averages 10
// rows more across than it has, a third of its work in that pass.
constexpr std::int64_t kTileWidth = 128, kTileHeight = 32;

/// A piece of a pass's result.
struct FloatTile {
  std::int64_t row, column, rows, columns;
};

class FloatTiles {
 public:
  FloatTiles(std::int64_t height, std::int64_t width)
      : height_(height), width_(width), across_((width + kTileWidth - 1) / kTileWidth) {}

  std::int64_t count() const { return across_ * ((height_ + kTileHeight - 1) / kTileHeight); }
  FloatTile tile(std::int64_t index) const {
    const std::int64_t row = index / across_ * kTileHeight, column = index % across_ * kTileWidth;
    return {.row = row,
        .column = column,
        .rows = std::min(kTileHeight, height_ - row),
        .columns = std::min(kTileWidth, width_ - column)};
  }

 private:
  std::int64_t height_, width_, across_;
};

/// Sums over windows.
struct SsimSums {
  double ssim = 0, luminance = 0, contrast = 0, structure = 0;
};

}  // namespace similis::libvmaf_ssim_internal
