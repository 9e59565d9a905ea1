// SPDX-License-Identifier: Apache-2.0
// The determinant of the derivative of x + u(x) at one voxel, for CPU and GPU.
#pragma once

#include "src/warp/formula.h"

namespace similis::fields_internal {

using warp_internal::Axis;

/// The two voxels of a difference along one axis and the inverse of their distance: central inside,
/// one-sided at the border. Along an axis of one voxel both are that voxel, and the factor is 0.
struct Difference {
  std::int64_t below, above;
  double factor;
};

SIMILIS_HOST_DEVICE Difference difference(std::int64_t voxel, const Axis& axis) {
  const std::int64_t below = voxel > 0 ? voxel - 1 : 0;
  const std::int64_t above = voxel + 1 < axis.out_extent ? voxel + 1 : axis.out_extent - 1;
  const double distance = static_cast<double>(above - below) * axis.step;
  return {below, above, above > below ? 1 / distance : 0};
}

/// load(component, axis, i) returns that component of u at the voxel whose index along axis is i.
template <class Load>
SIMILIS_HOST_DEVICE double determinant(
    const Axis (&axes)[3], int rank, const std::int64_t (&voxel)[3], const Load& load) {
  double j[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  for (int a = 0; a < rank; ++a) {
    const Difference d = difference(voxel[a], axes[a]);
    for (int i = 0; i < rank; ++i)
      j[i][a] += (load(i, a, d.above) - load(i, a, d.below)) * d.factor;
  }
  return j[0][0] * (j[1][1] * j[2][2] - j[1][2] * j[2][1]) -
         j[0][1] * (j[1][0] * j[2][2] - j[1][2] * j[2][0]) +
         j[0][2] * (j[1][0] * j[2][1] - j[1][1] * j[2][0]);
}

}  // namespace similis::fields_internal
