// SPDX-License-Identifier: Apache-2.0
// What ncc.cc hands to a backend, and what both make of a plane's sums.
#pragma once

#include <cmath>
#include <cstdint>

#include "similis/ncc.hpp"
#include "src/core/host_device.h"

namespace similis::ncc_internal {

/// Sums over pixels of x and y less a constant each.
struct Sums {
  double x = 0, y = 0, xx = 0, yy = 0, xy = 0;

  SIMILIS_HOST_DEVICE void add_pixel(double a, double b) {
    x += a;
    y += b;
    xx += a * a;
    yy += b * b;
    xy += a * b;
  }
  SIMILIS_HOST_DEVICE void add(const Sums& other) {
    x += other.x;
    y += other.y;
    xx += other.xx;
    yy += other.yy;
    xy += other.xy;
  }
};

SIMILIS_HOST_DEVICE double correlation(const Sums& sums, double count) {
  const double covariance = sums.xy - sums.x * (sums.y / count);
  const double of_x = sums.xx - sums.x * (sums.x / count);
  const double of_y = sums.yy - sums.y * (sums.y / count);
  const double norm = sqrt(of_x > 0 ? of_x : 0) * sqrt(of_y > 0 ? of_y : 0);
  if (norm == 0) return 0;
  const double result = covariance / norm;
  return result > 1 ? 1 : result < -1 ? -1 : result;
}

/// x, y: 5-D. value: dense f64, one number for each group of planes, which are groups alike in size
/// one after the other; is_sum: of their numbers, else their mean.
struct Pass {
  TensorView x, y, value;
  bool is_sum = false;
};

void ncc_cpu(const Pass& pass, const Execution& exec);
void ncc_cuda(const Pass& pass, const Execution& exec);

}  // namespace similis::ncc_internal
