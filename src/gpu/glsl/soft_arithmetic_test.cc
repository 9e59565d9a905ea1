// SPDX-License-Identifier: Apache-2.0
// The integer arithmetic of kernels, compiled for the CPU, against the processor's own.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>

namespace similis::gpu {
namespace {

using u64 = std::uint64_t;
using i64 = std::int64_t;
using uint = std::uint32_t;
#define FUNCTION static
#define OUT(type) type&
#define INOUT(type) type&
uint bits_of(float value) { return std::bit_cast<uint>(value); }
float float_of(uint bits) { return std::bit_cast<float>(bits); }
int high_bit(u64 value) { return 63 - std::countl_zero(value); }
void product_128(u64 a, u64 b, u64& high, u64& low) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  high = static_cast<u64>(product >> 64);
  low = static_cast<u64>(product);
}
#include "src/gpu/glsl/soft_arithmetic.h"

constexpr int kCases = 1'000'000;

class SoftArithmetic : public testing::Test {
 protected:
  // Any finite number; or one of a few binades, of few bits in every second case, so that sums
  // cancel and lie halfway.
  float any_float(bool is_near) {
    auto bits = static_cast<uint>(random_());
    if (!is_near) {
      if ((bits >> 23 & 255) == 255) bits ^= 0x40000000u;
      return float_of(bits);
    }
    if (random_() % 2 == 0) bits &= ~0xfffu;
    return float_of((bits & 0x807fffffu) | static_cast<uint>(97 + random_() % 60) << 23);
  }
  double any_double(bool is_near) {
    u64 bits = random_();
    if (random_() % 3 == 0) bits &= ~u64{0xfffffffff};
    return std::bit_cast<double>((bits & 0x800fffffffffffffu) |
                                 (is_near ? 1019 + random_() % 8 : 963 + random_() % 130) << 52);
  }
  static u64 bits(double value) { return std::bit_cast<u64>(value); }

  std::mt19937_64 random_{1};
};

TEST_F(SoftArithmetic, FmaHasTheBits) {
  for (int i = 0; i < kCases; ++i) {
    const float a = any_float(i % 2 != 0), b = any_float(i % 2 != 0);
    float c = any_float(i % 2 != 0);
    if (i % 7 == 0) c = -a * b;
    if (i % 11 == 0) c = float_of(bits_of(-a * b) ^ static_cast<uint>(random_() & 3));
    if (i % 1000 == 1) c = i % 3000 == 1 ? 0.0f : -0.0f;
    const float expected = std::fma(a, b, c);
    if (!std::isfinite(expected) || !std::isfinite(c)) continue;
    ASSERT_EQ(bits_of(soft_fma(a, b, c)), bits_of(expected)) << a << ' ' << b << ' ' << c;
  }
}

TEST_F(SoftArithmetic, DoublesHaveTheBits) {
  for (int i = 0; i < kCases; ++i) {
    const double a = any_double(i % 2 != 0);
    double b = any_double(i % 2 != 0);
    if (i % 13 == 0) b = -a;
    if (i % 17 == 0) b = std::bit_cast<double>(bits(-a) ^ (random_() & 7));
    ASSERT_EQ(soft_f64_sum(bits(a), bits(b)), bits(a + b)) << a << ' ' << b;
    ASSERT_EQ(soft_f64_product(bits(a), bits(b)), bits(a * b)) << a << ' ' << b;
    ASSERT_EQ(soft_f64_quotient(bits(a), bits(b)), bits(a / b)) << a << ' ' << b;
  }
}

TEST_F(SoftArithmetic, DoublesOfNumbersHaveTheBits) {
  for (int i = 0; i < kCases; ++i) {
    const auto integer = static_cast<i64>(random_()) >> (i % 64);
    ASSERT_EQ(soft_f64_of_int(integer), bits(static_cast<double>(integer))) << integer;
    const float number = any_float(true);
    ASSERT_EQ(soft_f64_of_float(number), bits(static_cast<double>(number))) << number;
  }
}

TEST_F(SoftArithmetic, FmaOfDoublesHasTheBits) {
  for (int i = 0; i < kCases; ++i) {
    const double a = any_double(i % 2 != 0), b = any_double(i % 2 != 0);
    double c = any_double(i % 2 != 0);
    if (i % 7 == 0) c = -a * b;
    if (i % 11 == 0) c = std::bit_cast<double>(bits(-a * b) ^ (random_() & 3));
    if (i % 13 == 0) c *= std::ldexp(1.0, static_cast<int>(random_() % 260) - 130);
    if (i % 1000 == 1) c = i % 3000 == 1 ? 0.0 : -0.0;
    ASSERT_EQ(soft_f64_fma(bits(a), bits(b), bits(c)), bits(std::fma(a, b, c)))
        << a << ' ' << b << ' ' << c;
  }
}

TEST_F(SoftArithmetic, RootsHaveTheBits) {
  for (int i = 0; i < kCases / 10; ++i) {
    double a = std::abs(any_double(i % 2 != 0));
    if (i % 3 == 0) a *= a;
    ASSERT_EQ(soft_f64_root(bits(a)), bits(std::sqrt(a))) << a;
  }
  EXPECT_EQ(soft_f64_root(bits(0.0)), bits(0.0));
}

TEST_F(SoftArithmetic, DoublesBecomeFloatsAndWholeNumbers) {
  for (int i = 0; i < kCases; ++i) {
    const double a = any_double(i % 2 != 0);
    for (const double of : {a, a * 0x1p-90, a * 0x1p120})
      ASSERT_EQ(soft_f32_of_f64(bits(of)), bits_of(static_cast<float>(of))) << of;
    const double near = static_cast<double>(static_cast<float>(a)) * (1 + 0x1p-24);
    ASSERT_EQ(soft_f32_of_f64(bits(near)), bits_of(static_cast<float>(near))) << near;
    const double small = std::fmod(a, 1e9);
    ASSERT_EQ(soft_f64_floor_to_int(bits(small)), static_cast<int>(std::floor(small))) << small;
    const double b = any_double(i % 2 != 0);
    ASSERT_EQ(soft_f64_less(bits(a), bits(b)), a < b) << a << ' ' << b;
    ASSERT_FALSE(soft_f64_less(bits(a), bits(a)));
  }
  EXPECT_EQ(soft_f32_of_f64(bits(-HUGE_VAL)), bits_of(-HUGE_VALF));
  EXPECT_TRUE(std::isnan(float_of(soft_f32_of_f64(bits(std::nan(""))))));
}

TEST_F(SoftArithmetic, TakesZeros) {
  for (const double zero : {0.0, -0.0}) {
    for (const double other : {0.0, -0.0, 1.5, -7.0}) {
      EXPECT_EQ(soft_f64_sum(bits(zero), bits(other)), bits(zero + other));
      EXPECT_EQ(soft_f64_sum(bits(other), bits(zero)), bits(other + zero));
      EXPECT_EQ(soft_f64_product(bits(zero), bits(other)), bits(zero * other));
      if (other == 0) continue;
      EXPECT_EQ(soft_f64_quotient(bits(zero), bits(other)), bits(zero / other));
    }
  }
  EXPECT_EQ(soft_f64_of_int(0), bits(0.0));
  EXPECT_EQ(soft_f64_of_float(-0.0f), bits(-0.0));
}

}  // namespace
}  // namespace similis::gpu
