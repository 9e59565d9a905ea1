// SPDX-License-Identifier: Apache-2.0
// LNCC and NCC of two volumes with one channel, and their derivative by the field that moves one of
// them, in three passes on the CPU. They compute what the fused kernels of a GPU do, in the type of
// the images: f32 or f64.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "similis/execution.hpp"
#include "src/registration/levels.h"

namespace similis::registration_internal {

class FusedMetric;

/// Voxel x of `fixed` meets start + by·(x + u(x)) of `moving`. Masks may be null: all voxels count.
template <class T> struct FusedVolumes {
  std::array<std::int64_t, 3> size = {}, moving_size = {};  ///< x, y, z
  T start[3] = {}, by[3][3] = {};
  const T *fixed = nullptr, *moving = nullptr, *fixed_mask = nullptr, *moving_mask = nullptr;

  FusedVolumes(const Image& still, const Image& moved)
      : size(still.grid.size),
        moving_size(moved.grid.size),
        fixed(still.values.elements<T>()),
        moving(moved.values.elements<T>()),
        fixed_mask(still.mask.elements<T>()),
        moving_mask(moved.mask.elements<T>()) {}

  void set_map(const Map& voxels) {
    for (std::size_t a = 0; a < 3; ++a) {
      start[a] = static_cast<T>(voxels.shift[a]);
      for (std::size_t c = 0; c < 3; ++c) by[a][c] = static_cast<T>(voxels.linear.rows[a][c]);
    }
  }
};

/// Volumes of one channel on the CPU whose offsets are of 32 bits: other images are not fused.
bool can_fuse(const Image& still, const Image& moved);

/// Null where the passes do not take the images, or other metrics than one LNCC in windows of 3, 5
/// or 7 and at most one NCC. Both images must outlive the result. voxels: the map between their
/// voxels.
std::unique_ptr<FusedMetric> fused_metric_cpu(const Image& still, const Image& moved,
    const Map& voxels, const std::vector<MetricTerm>& terms, const Execution& exec);

}  // namespace similis::registration_internal
