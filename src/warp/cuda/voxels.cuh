// SPDX-License-Identifier: Apache-2.0
// The place of a voxel in a field.
#pragma once

#include <cstdint>

#include "src/warp/cuda/pass.h"

namespace similis::warp_internal {

/// Voxel number `i` of [Z,Y,X].
struct Voxel {
  std::int64_t x, y, z;

  __device__ Voxel(const Axis (&axes)[3], std::int64_t i)
      : x(i % axes[0].out_extent),
        y(i / axes[0].out_extent % axes[1].out_extent),
        z(i / (axes[0].out_extent * axes[1].out_extent)) {}
  __device__ std::int64_t in(const gpu::View& field, std::int64_t n) const {
    const std::int64_t* s = field.strides;
    return n * s[0] + z * s[1] + y * s[2] + x * s[3];
  }
};

inline std::int64_t voxel_count(const Axis (&axes)[3]) {
  return axes[0].out_extent * axes[1].out_extent * axes[2].out_extent;
}

}  // namespace similis::warp_internal
