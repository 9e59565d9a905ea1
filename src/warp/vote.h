// SPDX-License-Identifier: Apache-2.0
// The label whose voxels around a coordinate have the largest sum of linear weights, for CPU and
// GPU.
#pragma once

#include "src/warp/formula.h"

namespace similis::warp_internal {

template <class T> struct Vote {
  double label;
  T weight;
  T slope[3];  // of the weight, by the index along x, y and z
};

/// load(x, y, z) gives a label; those below `smallest` and NaN do not vote. `background` where the
/// votes weigh nothing. Of equals the first met wins, x fastest.
template <class T, class Load>
SIMILIS_HOST_DEVICE Vote<T> vote(
    const Taps<T, 2> (&axis)[3], int planes, double smallest, double background, const Load& load) {
  Vote<T> votes[8];
  int count = 0;
  for (int corner = 0; corner < 4 * planes; ++corner) {
    const int kx = corner & 1, ky = corner >> 1 & 1, kz = corner >> 2;
    const int x = axis[0].voxel[kx], y = axis[1].voxel[ky], z = axis[2].voxel[kz];
    if (x == kNoVoxel || y == kNoVoxel || z == kNoVoxel) continue;
    const double label = load(x, y, z);
    if (!(label >= smallest)) continue;
    int found = 0;
    while (found < count && votes[found].label != label) ++found;
    if (found == count) votes[count++] = {label, 0, {0, 0, 0}};
    const T wx = axis[0].weight[kx], wy = axis[1].weight[ky];
    const T wz = axis[2].weight[kz], sz = axis[2].slope[kz];
    votes[found].weight += wx * wy * wz;
    votes[found].slope[0] += axis[0].slope[kx] * wy * wz;
    votes[found].slope[1] += wx * axis[1].slope[ky] * wz;
    votes[found].slope[2] += wx * wy * sz;
  }
  Vote<T> best{background, 0, {0, 0, 0}};
  for (int i = 0; i < count; ++i) {
    if (votes[i].weight > best.weight) best = votes[i];
  }
  return best;
}

}  // namespace similis::warp_internal
