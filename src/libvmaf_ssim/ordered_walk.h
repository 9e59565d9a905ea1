// SPDX-License-Identifier: Apache-2.0
// The ordered walk over the maps of a long sum, for a GPU and for a test of it on the CPU: chunks
// of terms, and groups of chunks whose maps are composed. It takes a group at once where that
// holds, else its chunks, else the terms of a chunk one by one.
#pragma once

#include <cstdint>

#include "src/core/host_device.h"
#include "src/libvmaf_ssim/ordered_sum.h"

namespace similis::libvmaf_ssim_internal {

// A chunk is added in 2 µs where its map does not hold, about once as a sum doubles. Composing 32
// lets the walk take 8192 terms a step.
constexpr int kChunkTerms = 256;
constexpr int kGroupChunks = 32;
constexpr int kGroupTerms = kChunkTerms * kGroupChunks;
// Maps of groups that are brought close together.
constexpr int kFetchedGroups = 64;

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

/// The map of chunk a and then chunk b; one that holds nowhere if their binades differ.
SIMILIS_HOST_DEVICE ChunkMap then(const ChunkMap& a, const ChunkMap& b) {
  ChunkMap both;
  both.first_exponent = a.first_exponent;
  double moved = 0;
  for (int i = 0; i < kBinades; ++i) {
    // An odd number of units is no whole number of twice the unit.
    const Binade twice = binade(a.first_exponent + i + 1);
    const bool even_turns = in_units(a.from_even[i], twice) != a.from_even[i];
    const bool odd_turns = in_units(a.from_odd[i], twice) != a.from_odd[i];
    both.from_even[i] = a.from_even[i] + (even_turns ? b.from_odd[i] : b.from_even[i]);
    both.from_odd[i] = a.from_odd[i] + (odd_turns ? b.from_even[i] : b.from_odd[i]);
    moved = larger(moved, larger(magnitude(a.from_even[i]), magnitude(a.from_odd[i])));
  }
  both.reach = a.first_exponent == b.first_exponent ? larger(a.reach, moved + b.reach) : kNoReach;
  return both;
}

/// The sum of `count` terms in their order. Fetch brings things close and returns where they are,
/// until the same function is called again:
///   groups(first, count), chunks(first, count): maps;  terms(first, count): doubles.
template <class Fetch> SIMILIS_HOST_DEVICE double walk(std::int64_t count, Fetch& fetch) {
  double sum = 0;
  const std::int64_t group_count = groups_of(count), chunk_count = chunks_of(count);
  for (std::int64_t first = 0; first < group_count; first += kFetchedGroups) {
    const int fetched = at_most(group_count - first, kFetchedGroups);
    const ChunkMap* groups = fetch.groups(first, fetched);
    for (int g = 0; g < fetched; ++g) {
      if (advance(groups[g], sum)) continue;
      const std::int64_t first_chunk = (first + g) * kGroupChunks;
      const int in_group = at_most(chunk_count - first_chunk, kGroupChunks);
      const ChunkMap* chunks = fetch.chunks(first_chunk, in_group);
      for (int c = 0; c < in_group; ++c) {
        if (advance(chunks[c], sum)) continue;
        const std::int64_t first_term = (first_chunk + c) * kChunkTerms;
        const int in_chunk = at_most(count - first_term, kChunkTerms);
        sum = add_one_by_one(sum, fetch.terms(first_term, in_chunk), in_chunk);
      }
    }
  }
  return sum;
}

}  // namespace similis::libvmaf_ssim_internal
