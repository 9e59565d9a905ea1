// SPDX-License-Identifier: Apache-2.0
// The maps of chunks against adding one by one, term for term and bit for bit.
#include "src/libvmaf_ssim/integer/ordered_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace similis::libvmaf_ssim_internal {
namespace {

// A chunk's map as its definition has it.
ChunkMap map_of(const std::vector<double>& terms, int first_exponent) {
  ChunkMap map{.first_exponent = first_exponent};
  const auto count = static_cast<std::int64_t>(terms.size());
  double magnitudes = 0;
  for (const double term : terms) magnitudes += magnitude(term);
  map.reach = reach_of(magnitudes, count, first_exponent);
  for (int i = 0; i < kBinades; ++i) {
    const Binade b = binade(first_exponent + i);
    bool any_halfway = false;
    map.from_even[i] = 0;
    for (const double term : terms) {
      const double units = in_units(term, b);
      any_halfway |= is_halfway(term, units, b);
      map.from_even[i] += units;
    }
    map.from_odd[i] = map.from_even[i];
    if (any_halfway) map_in_order(terms.data(), count, i, map);
  }
  return map;
}

double one_by_one(double sum, const std::vector<double>& terms) {
  return add_one_by_one(sum, terms.data(), static_cast<std::int64_t>(terms.size()));
}

TEST(OrderedSum, ExponentsAreThoseOfTheLibrary) {
  for (const double value : {1.0, 1.5, -2.0, 0x1.fffffffffffffp9, 0x1p-300, -3e200}) {
    EXPECT_EQ(exponent_of(value), std::ilogb(value)) << value;
    EXPECT_EQ(power_of_two(exponent_of(value)), std::exp2(std::ilogb(value))) << value;
  }
  EXPECT_EQ(exponent_of(0), -1023);
  EXPECT_EQ(first_exponent_about(0), -901);
  EXPECT_EQ(first_exponent_about(5), 1);
}

TEST(OrderedSum, OddSumsEndInAnOddUnit) {
  EXPECT_FALSE(is_odd(1));
  EXPECT_TRUE(is_odd(std::nextafter(1, 2)));
  EXPECT_TRUE(is_odd(-std::nextafter(1, 2)));
}

TEST(OrderedSum, HalfwayTermsGoToTheEvenSum) {
  // Units of 1: sums about 2⁵².
  const double even = 0x1p52 + 10, odd = 0x1p52 + 11;
  for (const double term : {0.5, 1.5, -0.5, -1.5, 2.5, 3.5}) {
    const ChunkMap map = map_of({term}, 51);
    double from_even = even, from_odd = odd;
    ASSERT_FALSE(advance(map, from_even));  // may reach 2⁵²
    from_even = 1.5 * 0x1p52, from_odd = from_even + 1;
    ASSERT_TRUE(advance(map, from_even) && advance(map, from_odd));
    EXPECT_EQ(from_even, 1.5 * 0x1p52 + term) << term;
    EXPECT_EQ(from_odd, 1.5 * 0x1p52 + 1 + term) << term;
    EXPECT_EQ(static_cast<std::int64_t>(from_even) % 2, 0);
    EXPECT_EQ(static_cast<std::int64_t>(from_odd) % 2, 0);
  }
}

TEST(OrderedSum, MapsAreWhatAddingOneByOneDoes) {
  std::mt19937_64 random(1);
  const auto pick = [&](int count) { return static_cast<int>(random() % std::uint64_t(count)); };
  int applied = 0, with_halfway = 0;
  for (int trial = 0; trial < 40000; ++trial) {
    // Terms of few bits are often halfway between units.
    const int bits = 1 + pick(53), spread = pick(30), exponent = -52 + pick(60);
    std::vector<double> terms(static_cast<std::size_t>(1 + pick(40)));
    for (double& term : terms) {
      const double mantissa = static_cast<double>(random() >> (64 - bits));
      term = std::ldexp(mantissa, exponent - pick(spread + 1)) * (pick(3) == 0 ? -1 : 1);
    }
    const double mantissa = 1 + static_cast<double>(random() >> 12) * 0x1p-52;
    const double start = std::ldexp(mantissa, pick(60)) * (pick(2) == 0 ? -1 : 1);
    const ChunkMap map = map_of(terms, exponent_of(start) - pick(kBinades));
    double sum = start;
    if (!advance(map, sum)) {
      EXPECT_EQ(sum, start);
      continue;
    }
    ++applied;
    const int i = exponent_of(start) - map.first_exponent;
    with_halfway += map.from_even[i] != map.from_odd[i];
    ASSERT_EQ(sum, one_by_one(start, terms)) << "trial " << trial;
  }
  EXPECT_GT(applied, 10000);
  EXPECT_GT(with_halfway, 500);
}

TEST(OrderedSum, SumsThatMightLeaveTheirBinadeAreLeftAlone) {
  const ChunkMap map = map_of({1, 1, 1}, 9);
  for (const double sum : {1023.0, 1025.0, -1023.0, 2046.0, 512.0, 255.0, 5000.0, 0.0}) {
    double copy = sum;
    EXPECT_FALSE(advance(map, copy)) << sum;
    EXPECT_EQ(copy, sum);
  }
  for (const double sum : {1500.0, -1500.0, 700.0, 3000.0}) {
    double copy = sum;
    EXPECT_TRUE(advance(map, copy)) << sum;
    EXPECT_EQ(copy, sum + 3);
  }
}

}  // namespace
}  // namespace similis::libvmaf_ssim_internal
