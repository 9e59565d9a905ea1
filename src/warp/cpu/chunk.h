// SPDX-License-Identifier: Apache-2.0
// Part of a row of the output, and the samples of its voxels: the same memory for all SIMD targets.
#pragma once

#include <cstdint>

#include "src/warp/cpu/plan.h"
#include "src/warp/formula.h"

namespace similis::warp_internal {

struct Chunk {
  // Along y or z: of its voxels, as the grid counts them.
  double position(const Pass& pass, int axis) const {
    return pass.axes[axis].first + static_cast<double>(axis == 1 ? y : z);
  }

  std::int64_t image, z, y, x, count;   // its first voxel, and its number of voxels
  alignas(64) double field[3][kChunk];  // displacement or grid, as given
  alignas(64) double index[3][kChunk];  // in the image's voxels, x, y, z
  // Derivative of the folded index by the index; unused with zeros, where it is 1 or does not
  // matter.
  alignas(64) double slope[3][kChunk];
};

/// The values and slopes of a chunk's voxels in one channel.
template <class T> struct Samples {
  alignas(64) T value[kChunk];
  alignas(64) T slope[3][kChunk];
  alignas(64) T weight[kChunk];  // for labels
};

template <class T, int count>
void taps_of(const Pass& pass, const Chunk& chunk, std::int64_t i, Taps<T, count> (&out)[3]) {
  for (int a = 0; a < 3; ++a) {
    const Axis& axis = pass.axes[a];
    out[a] = a < pass.rank ? taps<T, count>(chunk.index[a][i], static_cast<int>(axis.whole))
                           : flat_taps<T, count>();
    if (a == pass.rank - 1 && axis.is_part()) keep_part(axis, chunk.index[a][i], &out[a]);
  }
}

}  // namespace similis::warp_internal
