// SPDX-License-Identifier: Apache-2.0
// The label whose voxels around a coordinate have the largest sum of linear weights, for CPU and
// GPU.
#pragma once

#include "src/warp/formula.h"

namespace similis::warp_internal {

template <class T> struct Vote {
  double label;
  T weight;
  T slope[3];  // derivatives of the weight by the index along x, y and z
};

/// Returns whether all corners exist, vote and have the same label; then `label` and their weights'
/// sum are those that vote() finds, and its slopes are 0. So it is of most voxels of a map of
/// labels: a CPU asks first. On a GPU a warp takes as long as its slowest voxel.
template <class T, class Load>
SIMILIS_HOST_DEVICE bool is_unanimous(const Taps<T, 2> (&axis)[3], int planes, double smallest,
    const Load& load, double* label, T* weight) {
  for (int a = 0; a < (planes == 1 ? 2 : 3); ++a) {
    if (axis[a].voxel[0] == kNoVoxel || axis[a].voxel[1] == kNoVoxel) return false;
  }
  const double first = load(axis[0].voxel[0], axis[1].voxel[0], axis[2].voxel[0]);
  if (!(first >= smallest)) return false;
  T sum = 0;
  for (int kz = 0; kz < planes; ++kz) {
    for (int ky = 0; ky < 2; ++ky) {
      const int y = axis[1].voxel[ky], z = axis[2].voxel[kz];
      const bool are_equal =
          load(axis[0].voxel[0], y, z) == first && load(axis[0].voxel[1], y, z) == first;
      if (!are_equal) return false;
      for (int kx = 0; kx < 2; ++kx) {
        sum += axis[0].weight[kx] * axis[1].weight[ky] * axis[2].weight[kz];
      }
    }
  }
  *label = first;
  *weight = sum;
  return true;
}

/// load(x, y, z) gives a label; those below `smallest` and NaN do not vote. The label is
/// `background` where the weights sum to 0, or are NaN, which passes on. Among equals the first met
/// wins, x fastest. Neighbours along an axis that vote alike exchange weight: slopes are made of
/// the other votes, and are exactly 0 without any.
template <class T, class Load>
SIMILIS_HOST_DEVICE Vote<T> vote(
    const Taps<T, 2> (&axis)[3], int planes, double smallest, double background, const Load& load) {
  double labels[8];
  T weights[8];
  unsigned voters[8];  // corners, a bit each
  int count = 0;
  for (int corner = 0; corner < 4 * planes; ++corner) {
    const int kx = corner & 1, ky = corner >> 1 & 1, kz = corner >> 2;
    const int x = axis[0].voxel[kx], y = axis[1].voxel[ky], z = axis[2].voxel[kz];
    if (x == kNoVoxel || y == kNoVoxel || z == kNoVoxel) continue;
    const double label = load(x, y, z);
    if (!(label >= smallest)) continue;
    int found = 0;
    while (found < count && labels[found] != label) ++found;
    if (found == count) {
      labels[count] = label;
      weights[count] = 0;
      voters[count++] = 0;
    }
    weights[found] += axis[0].weight[kx] * axis[1].weight[ky] * axis[2].weight[kz];
    voters[found] |= 1u << corner;
  }
  const T nothing = 0 * (axis[0].weight[0] + axis[1].weight[0] + axis[2].weight[0]);  // or NaN
  Vote<T> best{background, nothing, {nothing, nothing, nothing}};
  unsigned won = 0;
  for (int i = 0; i < count; ++i) {
    if (!(weights[i] > best.weight)) continue;
    best.label = labels[i];
    best.weight = weights[i];
    won = voters[i];
  }
  for (int corner = 0; corner < 4 * planes; ++corner) {
    if ((won >> corner & 1) == 0) continue;
    for (int a = 0; a < 3; ++a) {
      if (won >> (corner ^ (1 << a)) & 1) continue;
      const int b = (a + 1) % 3, c = (a + 2) % 3;
      best.slope[a] += axis[a].slope[corner >> a & 1] * axis[b].weight[corner >> b & 1] *
                       axis[c].weight[corner >> c & 1];
    }
  }
  return best;
}

}  // namespace similis::warp_internal
