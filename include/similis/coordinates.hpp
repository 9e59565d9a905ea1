// SPDX-License-Identifier: Apache-2.0
// A point in the normalised coordinates of warp.hpp and fields.hpp, and parts of an axis.
#pragma once

#include <cstdint>

namespace similis {

struct Coordinates {
  double x = 0, y = 0, z = 0;  ///< z is not read in 2D
};

/// Rows of the first spatial axis (z, or y in 2D) that an array holds of a longer one: as many as
/// it has, from `start` on, of `extent`. An extent of 0: the array has the whole axis.
struct Rows {
  std::int64_t start = 0, extent = 0;
};

}  // namespace similis
