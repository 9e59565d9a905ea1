// SPDX-License-Identifier: Apache-2.0
// Luma planes as VMAF's features take them.
#pragma once

#include <cstdint>

namespace similis::vmaf_internal {

/// A plane on the host with dense rows: bytes, or words of bit_depth bits.
struct Plane {
  const void* samples = nullptr;
  std::int64_t row_stride = 0;  ///< in samples
  std::int64_t width = 0, height = 0;
  bool is_words = false;
  int bit_depth = 8;

  template <class Sample> const Sample* row(std::int64_t index) const {
    return static_cast<const Sample*>(samples) + index * row_stride;
  }
  int at(std::int64_t y, std::int64_t x) const {
    return is_words ? row<std::uint16_t>(y)[x] : row<std::uint8_t>(y)[x];
  }
};

/// Two planes of one size and depth.
struct PlanePair {
  Plane reference, distorted;
};

/// The index that is reflected at the borders without repeating the edge; for indices less than one
/// extent outside.
constexpr std::int64_t reflected(std::int64_t index, std::int64_t extent) {
  if (index < 0) return -index;
  return index < extent ? index : 2 * (extent - 1) - index;
}

/// The rows of each stripe, an even number of at most `most`, which is even too. There is an even
/// number of nearly equal stripes, so that two threads have the same to do.
constexpr std::int64_t equal_stripe_rows(std::int64_t rows, std::int64_t most) {
  const std::int64_t pairs = (rows + 2 * most - 1) / (2 * most);
  return (rows + 4 * pairs - 1) / (4 * pairs) * 2;
}

/// value / 2^shift, rounded to nearest, halves up.
constexpr std::int64_t rounded_shift(std::int64_t value, int shift) {
  return shift == 0 ? value : (value + (std::int64_t{1} << (shift - 1))) >> shift;
}

}  // namespace similis::vmaf_internal
