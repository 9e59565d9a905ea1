// SPDX-License-Identifier: Apache-2.0
// A point in the normalised coordinates of warp.hpp and fields.hpp.
#pragma once

namespace similis {

struct Coordinates {
  double x = 0, y = 0, z = 0;  ///< z is not read in 2D
};

}  // namespace similis
