// SPDX-License-Identifier: Apache-2.0
// The share of a voxel in the curvature of LNCC, and a step divided by a smoothed one.
#pragma once

#include <cstdint>

#include "src/core/host_device.h"
#include "src/registration/passes.h"

namespace similis::registration_internal {

/// Elements to a voxel's neighbours along an axis; 0 where there is none.
struct Beside {
  std::int64_t before, behind;
};

/// edge_products() of voxel i, whose neighbours along both axes are a and b.
template <bool has_mask>
SIMILIS_HOST_DEVICE float edge_product(
    const Averages& of, std::int64_t i, const Beside& a, const Beside& b) {
  constexpr float kFloor = 1e-3f;  // of the variance, where images are in [0, 1]
  const auto slope = [&](const Beside& along) {
    const float share = along.before != 0 && along.behind != 0 ? 0.5f : 1.0f;
    return share * (of.values[i + along.behind] - of.values[i + along.before]);
  };
  const float variance = of.square[i] - of.mean[i] * of.mean[i];
  const float product = slope(a) * slope(b) / ((variance > 0 ? variance : 0) + kFloor);
  if constexpr (has_mask) {
    const float all = of.mask[i] * of.mask[i + a.before] * of.mask[i + a.behind] *
                      of.mask[i + b.before] * of.mask[i + b.behind];
    return all != 0 ? product : 0.0f;
  } else {
    return product;
  }
}

/// (1 + Q)⁻¹·v of a symmetric Q: xx, yy, zz, xy, xz, yz. By L·D·Lᵀ, whose D is at least 1 where Q
/// is positive semidefinite as it should be: what rounding takes away is put back.
SIMILIS_HOST_DEVICE void solve_damped(const float (&q)[6], float (&v)[3]) {
  const auto at_least_one = [](float pivot) { return pivot > 1 ? pivot : 1.0f; };
  const float x = 1 / at_least_one(1 + q[0]), yx = q[3] * x, zx = q[4] * x;
  const float y = 1 / at_least_one(1 + q[1] - yx * q[3]), across = q[5] - zx * q[3],
              zy = across * y;
  const float z = 1 / at_least_one(1 + q[2] - zx * q[4] - zy * across);
  v[1] -= yx * v[0];
  v[2] -= zx * v[0] + zy * v[1];
  v[2] *= z;
  v[1] = v[1] * y - zy * v[2];
  v[0] = v[0] * x - yx * v[1] - zx * v[2];
}

}  // namespace similis::registration_internal
