// SPDX-License-Identifier: Apache-2.0
// A box of pixels of one plane, which one task of a thread computes. The tiles depend on the image
// alone, so that results do not depend on the number of threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace similis {

/// Pixels first … last-1.
struct Interval {
  std::int64_t first = 0, last = 0;
};

inline constexpr Interval kEverywhere{0, std::numeric_limits<std::int64_t>::max()};

struct Tile {
  Interval z, y, x;
};

inline bool contains(const Interval& interval, std::int64_t index) {
  return index >= interval.first && index < interval.last;
}

inline Interval intersection(const Interval& a, const Interval& b) {
  const std::int64_t first = std::max(a.first, b.first);
  return {first, std::max(first, std::min(a.last, b.last))};
}

/// Cuts an extent into as few pieces of at most `longest` as there can be, as even as they can be.
inline std::vector<Interval> cut(std::int64_t extent, std::int64_t longest) {
  const std::int64_t count = (extent + longest - 1) / longest;
  const std::int64_t length = count > 0 ? (extent + count - 1) / count : 1;
  std::vector<Interval> pieces;
  for (std::int64_t first = 0; first < extent; first += length) {
    pieces.push_back({first, std::min(extent, first + length)});
  }
  return pieces;
}

}  // namespace similis
