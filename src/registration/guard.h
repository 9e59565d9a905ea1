// SPDX-License-Identifier: Apache-2.0
// The guard against folds. A field passes if the 2ⁿ determinants of one-sided differences of
// x + u(x) are no less than a bound at any voxel; their mean is that of central differences, which
// then is positive too.
#pragma once

#include <cstdint>
#include <vector>

#include "similis/execution.hpp"
#include "src/registration/geometry.h"
#include "src/registration/passes.h"

namespace similis::registration_internal {

struct Guarded {
  bool passed = false;
  double least = 0;           ///< determinant of the field as it is left
  std::int64_t repaired = 0;  ///< voxels below the bound before the first repair
};

/// The number of times that a repair is tried.
constexpr int kRepairs = 20;

/// The view of a field in a box.
TensorView part_of(const Tensor& field, const Box& box, int rank);

/// Smooths `field` about the voxels of the box `bad` where u is below the bound.
void smooth_about(const Grid& grid, const Box& bad, const Tensor& u, double bound,
    const Tensor& field, const Execution& exec);

/// Smooths u about the voxels of the box `bad` that are below the bound, which no others are, until
/// there is none, kRepairs times at most. Returns true if none is left.
bool repair(const Grid& grid, const Box& bad, const Tensor& u, double bound, const Execution& exec);

/// The boxes about groups of voxels in `box` where u is below the bound. Voxels that are at most 2
/// apart along each axis are of one group.
std::vector<Box> bad_spots(
    const Grid& grid, const Tensor& u, const Box& box, double bound, const Execution& exec);

/// Smooths `field` in a box, and less and less in the voxels about it.
void smooth_within(const Grid& grid, const Box& box, const Tensor& field, const Execution& exec);

/// Smooths u (in voxels, dense) about the voxels below the bound until there is none, up to 20
/// times. A field that passes is not changed.
Guarded guard(const Grid& grid, const Tensor& u, double bound, const Execution& exec);

/// guard(), and where it fails u ← 0.9·u until u passes, which ends as the identity does.
Guarded guard_or_shorten(const Grid& grid, const Tensor& u, double bound, const Execution& exec);

/// Likewise for a velocity v until exp(v) and exp(-v) both pass: v is what is smoothed or
/// shortened.
Guarded guard_exponentials(const Grid& grid, const Tensor& v, double bound, const Execution& exec);

}  // namespace similis::registration_internal
