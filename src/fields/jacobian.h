// SPDX-License-Identifier: Apache-2.0
// The determinant of the derivative of x + u(x) at one voxel, for CPU and GPU.
#pragma once

#include "src/warp/formula.h"

namespace similis::fields_internal {

using warp_internal::Axis;

/// Differences of neighbours along one axis: central inside, one-sided at the border, 0 along an
/// axis of one voxel. At the border the voxel itself is its missing neighbour.
template <class T> struct Differences {
  T inside = 0, at_border = 0;  // inverse distances

  Differences() = default;
  explicit Differences(const Axis& axis) {
    if (axis.out_extent == 1) return;
    at_border = static_cast<T>(1 / axis.step);
    inside = static_cast<T>(1 / (2 * axis.step));
  }
};

/// change[i][a]: the derivative of u's component i along axis a. A NaN stays one.
template <class T> SIMILIS_HOST_DEVICE T determinant(const T (&change)[3][3]) {
  const T(&c)[3][3] = change;
  const T j00 = 1 + c[0][0], j11 = 1 + c[1][1], j22 = 1 + c[2][2];
  return j00 * (j11 * j22 - c[1][2] * c[2][1]) - c[0][1] * (c[1][0] * j22 - c[1][2] * c[2][0]) +
         c[0][2] * (c[1][0] * c[2][1] - j11 * c[2][0]);
}

/// Returns whether a voxel counts as folded: a determinant that is not above 0, NaN included.
template <class T> SIMILIS_HOST_DEVICE bool is_fold(T determinant) { return !(determinant > 0); }

}  // namespace similis::fields_internal
