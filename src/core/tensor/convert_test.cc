// SPDX-License-Identifier: Apache-2.0
#include "src/core/tensor/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace similis {
namespace {

// The value of an f16 by its definition: sign, exponent, fraction.
double value_of(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 31) {
    return fraction ? std::numeric_limits<double>::quiet_NaN()
                    : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(Convert, EveryF16LoadsAsItsValueAndStoresBack) {
  for (int bits = 0; bits < 65536; ++bits) {
    const F16 half{static_cast<std::uint16_t>(bits)};
    const float value = load(half);
    if (std::isnan(value_of(half.bits))) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      continue;
    }
    ASSERT_EQ(value, value_of(half.bits)) << bits;
    F16 stored{};
    store(value, &stored);
    ASSERT_EQ(stored.bits, half.bits) << bits;
  }
}

TEST(Convert, F16StoresRoundToNearestEven) {
  for (int bits = 0; bits < 0x7bff; ++bits) {
    const double low = value_of(static_cast<std::uint16_t>(bits));
    const double high = value_of(static_cast<std::uint16_t>(bits + 1));
    const float middle = static_cast<float>((low + high) / 2);
    F16 stored{};
    store(middle, &stored);
    ASSERT_EQ(stored.bits, bits + (bits & 1)) << bits;
    store(std::nextafter(middle, 0.0f), &stored);
    ASSERT_EQ(stored.bits, bits) << bits;
    store(std::nextafter(middle, 1e9f), &stored);
    ASSERT_EQ(stored.bits, bits + 1) << bits;
  }
  F16 stored{};
  store(65520.0f, &stored);
  EXPECT_EQ(stored.bits, 0x7c00);
  store(-65519.9f, &stored);
  EXPECT_EQ(stored.bits, 0xfbff);
}

TEST(Convert, BF16RoundsToNearestEvenAndKeepsNan) {
  BF16 stored{};
  store(1.00390625f, &stored);  // halfway between 1 and 1 + 2^-7
  EXPECT_EQ(load(stored), 1.0f);
  store(1.01171875f, &stored);  // halfway between 1 + 2^-7 and 1 + 2^-6
  EXPECT_EQ(load(stored), 1.015625f);
  store(std::numeric_limits<float>::max(), &stored);
  EXPECT_EQ(load(stored), std::numeric_limits<float>::infinity());
  store(std::numeric_limits<float>::quiet_NaN(), &stored);
  EXPECT_TRUE(std::isnan(load(stored)));
}

}  // namespace
}  // namespace similis
