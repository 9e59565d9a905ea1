// SPDX-License-Identifier: Apache-2.0
// LNCC and NCC of two volumes with one channel, and their derivative by the field that moves one of
// them, in three passes on the CPU. They compute in f32 what the fused kernels of a GPU do.
#pragma once

#include <array>
#include <cstdint>

#include "similis/execution.hpp"

namespace similis::registration_internal {

/// Voxel x of `fixed` meets start + by·(x + u(x)) of `moving`. Masks may be null: all voxels count.
struct FusedVolumes {
  std::array<std::int64_t, 3> size, moving_size;  ///< x, y, z
  float start[3], by[3][3];
  const float *fixed, *moving, *fixed_mask, *moving_mask;
  int radius;                     ///< of LNCC's window: 1, 2 or 3
  float lncc_weight, ncc_weight;  ///< 0: left out
};

/// The sizes that the passes take: rows that hold a vector, and offsets of 32 bits.
bool can_fuse(const FusedVolumes& volumes);

/// Sets `gradient` to the derivative by u of the value times the number of voxels that count, 3
/// numbers a voxel, and returns the value. j: 1 number a voxel. slopes: 3 numbers a voxel; it may
/// be u's memory, which is read first.
double differentiate_fused(const FusedVolumes& volumes, const float* u, float* j, float* slopes,
    float* gradient, const Execution& exec);

}  // namespace similis::registration_internal
