// SPDX-License-Identifier: Apache-2.0
// The input and output of the CPU's loops over voxels, the same for every SIMD target.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace similis::mutual_information_internal {

/// The smallest and largest value of each image.
struct Limits {
  double x_low = std::numeric_limits<double>::infinity(), x_high = -x_low;
  double y_low = x_low, y_high = x_high;

  Limits with(const Limits& o) const {
    return {std::min(x_low, o.x_low), std::max(x_high, o.x_high), std::min(y_low, o.y_low),
        std::max(y_high, o.y_high)};
  }
  Limits common() const {
    const double low = std::min(x_low, y_low), high = std::max(x_high, y_high);
    return {low, high, low, high};
  }
};

/// Voxels [first, last) of a result, which one task goes through.
struct Range {
  std::int64_t result, first, last;
};

/// The slopes of one result's voxels, and their factor.
struct Slopes {
  const double* table;
  double factor;
};

}  // namespace similis::mutual_information_internal
