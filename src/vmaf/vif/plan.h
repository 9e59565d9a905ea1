// SPDX-License-Identifier: Apache-2.0
// The cut of VIF on the CPU, and the arguments of one scale's pass.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/vmaf/fused_products.h"
#include "src/vmaf/vif/formula.h"

namespace similis::vmaf_internal {

// Rows of a stripe, at most. At scale 0 it begins with 16 rows that only its windows see: an eighth
// of the work of making pairs, which is small beside the filters.
constexpr std::int64_t vif_most_stripe_rows(int scale) { return scale == 0 ? 128 : 64; }
// Columns to the left of a tile, for every scale.
constexpr std::int64_t kVifMargin = 8;

// Rows that a stripe may read above and below its own: those of windows, and of a last pass that
// makes rows which nobody counts.
constexpr std::int64_t kVifRowsSeen = 16;

struct VifPlan {
  VifPlan(const Plane& of_reference, std::span<const Plane> of_distorted, int at_scale, int depth,
      std::span<const double> limits)
      : reference(of_reference),
        distorted(of_distorted),
        scale(at_scale),
        bit_depth(depth),
        gain_limits(limits),
        stripe_rows(equal_stripe_rows(of_reference.height, vif_most_stripe_rows(at_scale))),
        stripes((of_reference.height + stripe_rows - 1) / stripe_rows) {}

  Plane reference;
  std::span<const Plane> distorted;
  int scale, bit_depth;
  std::span<const double> gain_limits;
  std::int64_t stripe_rows, stripes;
  bool is_fused = fuses_products();
  bool is_measured = true;  ///< otherwise only the next scale is made
  /// The planes of the next scale, dense ones, of the reference and of each distorted image; none
  /// behind the last scale.
  std::vector<std::uint16_t*> halved;
};

/// Scale by scale the pairs of samples that a window and the next one span. That of scale 3 has
/// zeros at its ends.
constexpr int kVifPairs[kVifScales] = {9, 5, 3, 3};

/// The taps of an even output, or of the odd one beside it, at pair `j`: two halves of a word. A
/// tap above 2^15 is 2^16 less; its sample times 2^16 is added apart.
constexpr std::uint32_t vif_tap_pair(int scale, int j, bool is_odd) {
  const int radius = kVifPairs[scale] - 1;
  const auto tap = [&](int index) -> std::uint32_t {
    const int offset = index - radius;
    const int reach = kVifRadius[static_cast<std::size_t>(scale)];
    if (offset < -reach || offset > reach) return 0;
    return static_cast<std::uint32_t>(vif_tap(scale, offset)) & 0xffff;
  };
  const int first = 2 * j - (is_odd ? 1 : 0);
  return tap(first) | tap(first + 1) << 16;
}

/// All pairs of taps of even and of odd outputs.
struct VifTapPairs {
  std::array<std::uint32_t, kVifPairs[0]> even{}, odd{};
};
constexpr VifTapPairs vif_tap_pairs(int scale) {
  VifTapPairs taps;
  for (int j = 0; j < kVifPairs[scale]; ++j) {
    taps.even[static_cast<std::size_t>(j)] = vif_tap_pair(scale, j, false);
    taps.odd[static_cast<std::size_t>(j)] = vif_tap_pair(scale, j, true);
  }
  return taps;
}
constexpr VifTapPairs kVifTapPairs[kVifScales] = {
    vif_tap_pairs(0), vif_tap_pairs(1), vif_tap_pairs(2), vif_tap_pairs(3)};

/// The logarithms of numbers from 2^17 on in vectors, for a test; count is a multiple of 16.
void vif_logarithms_cpu(const std::uint32_t* numbers, std::uint32_t* logs, std::size_t count);

}  // namespace similis::vmaf_internal
