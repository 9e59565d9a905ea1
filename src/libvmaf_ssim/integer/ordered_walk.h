// SPDX-License-Identifier: Apache-2.0
// The ordered walk over the maps of a long sum, for a GPU and for a test of it on the CPU: chunks
// of terms, and groups of chunks whose maps are composed. It takes groups where they hold, else a
// group's chunks, else the terms of a chunk. The walk looks at a window of maps at once: in the
// binade of the sum before them, the effect of each is a Step, and steps compose in any order.
#pragma once

#include <cstdint>

#include "src/core/host_device.h"
#include "src/libvmaf_ssim/integer/ordered_sum.h"

namespace similis::libvmaf_ssim_internal {

// A chunk's terms are looked at where its map does not hold, about once as a sum doubles. Composing
// 32 lets the walk take 8192 terms by one map.
constexpr int kChunkTerms = 256;
constexpr int kGroupChunks = 32;
constexpr int kGroupTerms = kChunkTerms * kGroupChunks;
constexpr int kWindowMaps = 32;  // one a thread of a warp
static_assert(kGroupChunks <= kWindowMaps);

SIMILIS_HOST_DEVICE std::int64_t chunks_of(std::int64_t terms) {
  return (terms + kChunkTerms - 1) / kChunkTerms;
}
SIMILIS_HOST_DEVICE std::int64_t groups_of(std::int64_t terms) {
  return (terms + kGroupTerms - 1) / kGroupTerms;
}

SIMILIS_HOST_DEVICE int at_most(std::int64_t count, int limit) {
  return count < limit ? static_cast<int>(count) : limit;
}

SIMILIS_HOST_DEVICE double larger(double a, double b) { return a > b ? a : b; }

/// More than any sum gets to: a map that holds nowhere.
constexpr double kNoReach = 0x1p1000;

/// The numbers added to an even or an odd sum of one binade.
struct Step {
  double from_even, from_odd;
  SIMILIS_HOST_DEVICE double from(double sum) const { return is_odd(sum) ? from_odd : from_even; }
};

/// Step a and then step b; `twice` is the binade above that of the sum.
SIMILIS_HOST_DEVICE Step then(const Step& a, const Step& b, const Binade& twice) {
  // An odd number of units is no whole number of twice the unit.
  const bool even_turns = in_units(a.from_even, twice) != a.from_even;
  const bool odd_turns = in_units(a.from_odd, twice) != a.from_odd;
  return {a.from_even + (even_turns ? b.from_odd : b.from_even),
      a.from_odd + (odd_turns ? b.from_even : b.from_odd)};
}

/// The step of a map for a sum in the binade of `exponent`; 0 if the map does not hold it.
SIMILIS_HOST_DEVICE Step step_of(const ChunkMap& map, int exponent) {
  Step step = {0, 0};
  for (int i = 0; i < kBinades; ++i) {
    if (exponent == map.first_exponent + i) step = {map.from_even[i], map.from_odd[i]};
  }
  return step;
}

/// The map of chunk a and then chunk b; one that holds nowhere if their binades differ.
SIMILIS_HOST_DEVICE ChunkMap then(const ChunkMap& a, const ChunkMap& b) {
  ChunkMap both;
  both.first_exponent = a.first_exponent;
  double moved = 0;
  for (int i = 0; i < kBinades; ++i) {
    const Step step = then(Step{a.from_even[i], a.from_odd[i]}, Step{b.from_even[i], b.from_odd[i]},
        binade(a.first_exponent + i + 1));
    both.from_even[i] = step.from_even;
    both.from_odd[i] = step.from_odd;
    moved = larger(moved, larger(magnitude(a.from_even[i]), magnitude(a.from_odd[i])));
  }
  both.reach = a.first_exponent == b.first_exponent ? larger(a.reach, moved + b.reach) : kNoReach;
  return both;
}

/// A long sum: its terms, and maps of its chunks and groups.
struct MappedTerms {
  const double* terms;
  const ChunkMap *chunks, *groups;
  std::int64_t count;
};

/// Returns the sum in order. A Walker has two functions:
///   window(maps, count)            looks at up to kWindowMaps maps
///     .advance(from, sum)          adds those from the one at `from` on as long as they hold, and
///                                  returns which does not; `count` if all do
///   add(terms, count, sum)         returns the sum with up to kChunkTerms terms added
template <class Walker> SIMILIS_HOST_DEVICE double walk(const MappedTerms& all, Walker walker) {
  double sum = 0;
  const std::int64_t groups = groups_of(all.count), chunks = chunks_of(all.count);
  const auto window_of_groups = [&](std::int64_t first) {
    return walker.window(
        all.groups + first, first < groups ? at_most(groups - first, kWindowMaps) : 0);
  };
  auto ahead = window_of_groups(0);
  for (std::int64_t group = 0; group < groups; group += kWindowMaps) {
    const auto window = ahead;
    ahead = window_of_groups(group + kWindowMaps);
    for (int g = window.advance(0, sum); g < window.count; g = window.advance(g + 1, sum)) {
      const std::int64_t chunk = (group + g) * kGroupChunks;
      const auto inside = walker.window(all.chunks + chunk, at_most(chunks - chunk, kGroupChunks));
      for (int c = inside.advance(0, sum); c < inside.count; c = inside.advance(c + 1, sum)) {
        const std::int64_t term = (chunk + c) * kChunkTerms;
        sum = walker.add(all.terms + term, at_most(all.count - term, kChunkTerms), sum);
      }
    }
  }
  return sum;
}

}  // namespace similis::libvmaf_ssim_internal
