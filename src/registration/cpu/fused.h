// SPDX-License-Identifier: Apache-2.0
// LNCC and NCC of two volumes with one channel, and their derivative by the field that moves one of
// them, in three passes on the CPU. They compute in f32 what the fused kernels of a GPU do.
#pragma once

#include <array>
#include <cstdint>

#include "similis/execution.hpp"
#include "src/registration/levels.h"

namespace similis::registration_internal {

constexpr int kMostFusedRadius = 3;  // of windows

/// Voxel x of `fixed` meets start + by·(x + u(x)) of `moving`. Masks may be null: all voxels count.
struct FusedVolumes {
  std::array<std::int64_t, 3> size, moving_size;  ///< x, y, z
  float start[3], by[3][3];
  const float *fixed, *moving, *fixed_mask, *moving_mask;
  int radius;                     ///< of LNCC's window
  float lncc_weight, ncc_weight;  ///< 0: left out

  void set_map(const Map& voxels);
};

/// Volumes of one channel on the CPU whose offsets are of 32 bits: other images are not fused.
bool can_fuse(const Image& still, const Image& moved);
/// Two such images, and the map between their voxels. Radius and weights are 0.
FusedVolumes fused_volumes(const Image& still, const Image& moved, const Map& voxels);

/// Sets `gradient` to the derivative by u of the value times the number of voxels that count, 3
/// numbers a voxel, and returns the value. j: 1 number a voxel. slopes: 3 numbers a voxel; it may
/// be u's memory, which is read first.
double differentiate_fused(const FusedVolumes& volumes, const float* u, float* j, float* slopes,
    float* gradient, const Execution& exec);

}  // namespace similis::registration_internal
