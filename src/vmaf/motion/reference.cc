// SPDX-License-Identifier: Apache-2.0
// Motion by loops: the oracle of the other backends.
#include <array>
#include <cstdlib>
#include <vector>

#include "src/vmaf/motion/motion.h"

namespace similis::vmaf_internal {

std::int64_t reference_motion_sad(const Plane& earlier, const Plane& later) {
  constexpr std::array<std::int64_t, 5> taps = {3571, 16004, 26386, 16004, 3571};
  const std::int64_t width = later.width, height = later.height;
  std::int64_t sad = 0;
  std::vector<std::int64_t> down(static_cast<std::size_t>(width));
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      std::int64_t sum = 0;
      for (int k = 0; k < 5; ++k) {
        const std::int64_t row = reflected(y + k - 2, height);
        sum += taps[static_cast<std::size_t>(k)] * (earlier.at(row, x) - later.at(row, x));
      }
      down[static_cast<std::size_t>(x)] = rounded_shift(sum, later.bit_depth);
    }
    for (std::int64_t x = 0; x < width; ++x) {
      std::int64_t sum = 0;
      for (int k = 0; k < 5; ++k) {
        sum += taps[static_cast<std::size_t>(k)] *
               down[static_cast<std::size_t>(reflected(x + k - 2, width))];
      }
      sad += std::abs(rounded_shift(sum, 16));
    }
  }
  return sad;
}

}  // namespace similis::vmaf_internal
