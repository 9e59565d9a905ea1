// SPDX-License-Identifier: Apache-2.0
// A sum of doubles with the bits of a loop that adds them one by one, from chunks of terms that are
// looked at in any order.
//
// While the running sum s stays in one binade, 2^e ≤ |s| < 2^(e+1), it is a whole number of units
// u = 2^(e-52), and adding a term rounds it to whole units: an addition of integers, which may be
// done in any order. Only a term halfway between two units looks at s: it goes to the even sum. So
// what a chunk does to s follows from e and from whether s is even. A ChunkMap holds that for three
// binades, found before s is known; advance() applies it where s turns out to be in one of them and
// to stay there, and says so where not: then the terms are added one by one.
#pragma once

#include <cstdint>

#include "src/core/host_device.h"
#include "src/core/tensor/convert.h"

namespace similis::libvmaf_ssim_internal {

/// The binades of a map: the expected one and its neighbours.
constexpr int kBinades = 3;

/// e of 2^e ≤ |value| < 2^(e+1); -1023 for numbers smaller than any normal number.
SIMILIS_HOST_DEVICE int exponent_of(double value) {
  return static_cast<int>(bits_as<std::uint64_t>(value) >> 52 & 0x7ff) - 1023;
}

/// 2^exponent, for exponents of normal numbers.
SIMILIS_HOST_DEVICE double power_of_two(int exponent) {
  return bits_as<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

SIMILIS_HOST_DEVICE double magnitude(double value) { return value < 0 ? -value : value; }

/// True if a sum is an odd number of the units of its binade.
SIMILIS_HOST_DEVICE bool is_odd(double sum) { return (bits_as<std::uint64_t>(sum) & 1) != 0; }

/// Sums from 2^e up to 2^(e+1): their unit, and one of them, even and far from both ends.
struct Binade {
  double unit, middle;
};
SIMILIS_HOST_DEVICE Binade binade(int exponent) {
  return {power_of_two(exponent - 52), 1.5 * power_of_two(exponent)};
}

/// A term in whole units, to even where it is halfway; exact for |term| < 2^(e-1).
SIMILIS_HOST_DEVICE double in_units(double term, const Binade& b) {
  return (term + b.middle) - b.middle;
}
SIMILIS_HOST_DEVICE bool is_halfway(double term, double term_in_units, const Binade& b) {
  return magnitude(term - term_in_units) == b.unit / 2;
}

/// The numbers that a chunk of terms adds to an even or an odd sum, by binade from `first_exponent`
/// on.
struct ChunkMap {
  double from_even[kBinades], from_odd[kBinades];
  double reach;  ///< in none of the binades does a partial sum get further from its start
  int first_exponent;
};

/// The lowest binade of a map for a sum that is expected to be about `expected`. Kept well inside
/// the exponents of normal numbers: a sum outside is added to term by term.
SIMILIS_HOST_DEVICE int first_exponent_about(double expected) {
  const int exponent = exponent_of(expected);
  return (exponent < -900 ? -900 : exponent > 900 ? 900 : exponent) - 1;
}

/// A map's reach from how far the furthest partial sum is from its start, or from anything larger;
/// itself rounded. Rounding to units moves a partial sum by at most half a unit a term.
SIMILIS_HOST_DEVICE double reach_of(double furthest, std::int64_t count, int first_exponent) {
  const double largest_unit = power_of_two(first_exponent + kBinades - 1 - 52);
  return furthest * (1 + 0x1p-40) + static_cast<double>(count + 4) * largest_unit;
}

SIMILIS_HOST_DEVICE double add_one_by_one(double sum, const double* terms, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) sum += terms[i];
  return sum;
}

/// Binade `i` of a map with halfway terms: adds them to an even and an odd sum, as they come.
SIMILIS_HOST_DEVICE void map_in_order(
    const double* terms, std::int64_t count, int i, ChunkMap& map) {
  const Binade b = binade(map.first_exponent + i);
  const double odd = b.middle + b.unit;
  map.from_even[i] = add_one_by_one(b.middle, terms, count) - b.middle;
  map.from_odd[i] = add_one_by_one(odd, terms, count) - odd;
}

/// True if a map holds for a sum: the sum is in one of its binades, and stays there.
SIMILIS_HOST_DEVICE bool holds(const ChunkMap& map, double sum) {
  const int i = exponent_of(sum) - map.first_exponent;
  if (i < 0 || i >= kBinades) return false;
  const double floor = power_of_two(map.first_exponent + i), size = magnitude(sum);
  const bool stays = size - map.reach > floor && size + map.reach < 2 * floor;
  // No term is above twice the reach, and in_units() was exact for terms below half of floor.
  return stays && 4 * map.reach < floor;
}

/// Adds a chunk to the running sum. False, and the sum is as it was, if the map does not hold.
SIMILIS_HOST_DEVICE bool advance(const ChunkMap& map, double& sum) {
  if (!holds(map, sum)) return false;
  const int i = exponent_of(sum) - map.first_exponent;
  sum += is_odd(sum) ? map.from_odd[i] : map.from_even[i];
  return true;
}

}  // namespace similis::libvmaf_ssim_internal
