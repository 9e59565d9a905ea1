// SPDX-License-Identifier: Apache-2.0
// The pass that ncc.cc hands to a backend, and the formula of both for a plane's sums.
#pragma once

#include <cmath>
#include <cstdint>

#include "similis/ncc.hpp"
#include "src/core/host_device.h"
#include "src/core/operation.h"
#include "src/core/pixel_pass.h"

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

/// NCC of a plane, and its slopes. With a and b the pixels less the constants of the sums:
///   ∂/∂x = cross·(b - mean_y) - own_x·(a - mean_x),  ∂/∂y = cross·(a - mean_x) - own_y·(b -
///   mean_y)
struct Correlation {
  double value = 0, mean_x = 0, mean_y = 0, cross = 0, own_x = 0, own_y = 0;

  SIMILIS_HOST_DEVICE double slope_x(double a, double b) const {
    return cross * (b - mean_y) - own_x * (a - mean_x);
  }
  SIMILIS_HOST_DEVICE double slope_y(double a, double b) const {
    return cross * (a - mean_x) - own_y * (b - mean_y);
  }
};

/// The correlation of count pixels; all 0 where either image is flat, NaN where a sum is.
SIMILIS_HOST_DEVICE Correlation correlation(const Sums& sums, double count) {
  const double covariance = sums.xy - sums.x * (sums.y / count);
  const double of_x = sums.xx - sums.x * (sums.x / count);
  const double of_y = sums.yy - sums.y * (sums.y / count);
  const double norm = sqrt(of_x < 0 ? 0 : of_x) * sqrt(of_y < 0 ? 0 : of_y);  // NaN stays NaN
  Correlation result;
  if (norm == 0) return result;
  const double value = covariance / norm;
  result.value = value > 1 ? 1 : value < -1 ? -1 : value;
  result.mean_x = sums.x / count;
  result.mean_y = sums.y / count;
  result.cross = 1 / norm;
  result.own_x = value / of_x;
  result.own_y = value / of_y;
  return result;
}

/// pass: images and gradients are 5-D; a result is the sum over planes_each() planes, one after the
/// other, over the divisor.
void ncc_cpu(const PixelPass& pass, const Execution& exec);
void ncc_cuda(const PixelPass& pass, const Execution& exec);

extern const Operation<PixelPass> kNcc;

inline std::int64_t planes(const PixelPass& pass) { return pass.x.shape[0] * pass.x.shape[1]; }
inline std::int64_t planes_each(const PixelPass& pass) {
  return planes(pass) / pass.result_shape.count();
}

}  // namespace similis::ncc_internal
