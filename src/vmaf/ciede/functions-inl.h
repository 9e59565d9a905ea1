// SPDX-License-Identifier: Apache-2.0
// Roots, angles and exponentials of vectors of doubles, right to about 1e-10, a hundredth of what
// moves a float. Sums of products are rounded once, on every target, so that all have the same
// bits. Included once per SIMD target, hence the guard that flips.
#if defined(SIMILIS_VMAF_CIEDE_FUNCTIONS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_VMAF_CIEDE_FUNCTIONS_INL_H
#undef SIMILIS_VMAF_CIEDE_FUNCTIONS_INL_H
#else
#define SIMILIS_VMAF_CIEDE_FUNCTIONS_INL_H
#endif

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace similis::vmaf_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Real = hn::ScalableTag<double>;
using R = hn::Vec<Real>;

HWY_INLINE R real(double value) { return hn::Set(Real(), value); }

// The nearest float of each lane.
HWY_INLINE R as_float(R value) {
  const Real d;
  const hn::Rebind<float, Real> df;
  return hn::PromoteTo(d, hn::DemoteTo(df, value));
}

// The same of numbers that are no halfway cases, as roots and angles are: those go up in size.
HWY_INLINE R as_near_float(R value) {
  const Real d;
  const hn::RebindToUnsigned<Real> d64;
  const auto half = hn::Set(d64, std::uint64_t{1} << 28);
  const auto kept = hn::Set(d64, ~((std::uint64_t{1} << 29) - 1));
  return hn::BitCast(d, hn::And(hn::Add(hn::BitCast(d64, value), half), kept));
}

// -x where a mask is set. Blends take units that products need; logic takes any.
HWY_INLINE R negated_if(hn::Mask<Real> mask, R x) {
  return hn::Xor(x, hn::IfThenElseZero(mask, real(-0.0)));
}

// a·b + c, rounded once.
HWY_INLINE R fused(R a, R b, R c) {
#if HWY_NATIVE_FMA
  return hn::MulAdd(a, b, c);
#elif HWY_TARGET == HWY_SCALAR
  return hn::Set(Real(), std::fma(hn::GetLane(a), hn::GetLane(b), hn::GetLane(c)));
#else
  // Sums and products are split into what is rounded and the exact rest; the two least parts are
  // added with rounding to odd. Source: Boldo and Melquiond, IEEE Trans. Computers 57(4), 2008.
  const Real d;
  const hn::RebindToSigned<Real> di;
  struct Parts {
    R value, rest;
  };
  const auto sum = [](R x, R y) HWY_ATTR {
    const R value = hn::Add(x, y), of_y = hn::Sub(value, x);
    return Parts{value, hn::Add(hn::Sub(x, hn::Sub(value, of_y)), hn::Sub(y, of_y))};
  };
  const auto upper_half = [](R x) HWY_ATTR {
    const R scaled = hn::Mul(x, real(134217729));  // 2^27 + 1
    return hn::Sub(scaled, hn::Sub(scaled, x));
  };
  const R product = hn::Mul(a, b), a1 = upper_half(a), b1 = upper_half(b);
  const R a2 = hn::Sub(a, a1), b2 = hn::Sub(b, b1);
  R rest = hn::Sub(hn::Mul(a1, b1), product);
  rest = hn::Add(hn::Add(rest, hn::Mul(a1, b2)), hn::Mul(a2, b1));
  rest = hn::Add(rest, hn::Mul(a2, b2));
  const Parts lower = sum(c, rest), upper = sum(product, lower.value);
  const Parts least = sum(upper.rest, lower.rest);
  // An inexact sum with an even last bit moves by one bit towards its rest.
  const auto bits = hn::BitCast(di, least.value);
  const auto is_moved = hn::RebindMask(di, hn::Ne(least.rest, hn::Zero(d)));
  const auto is_even = hn::Eq(hn::And(bits, hn::Set(di, 1)), hn::Zero(di));
  const auto signs = hn::Xor(bits, hn::BitCast(di, least.rest));
  const auto step = hn::Or(hn::BroadcastSignBit(signs), hn::Set(di, 1));
  const auto odd = hn::Add(bits, hn::IfThenElseZero(hn::And(is_moved, is_even), step));
  return hn::Add(upper.value, hn::BitCast(d, odd));
#endif
}

// Even and odd powers apart, which halves the steps that wait for one another.
template <std::size_t count> HWY_INLINE R polynomial(R x, const double (&coefficients)[count]) {
  static_assert(count >= 3);
  const R square = hn::Mul(x, x);
  constexpr std::size_t last = count - 1;
  R one = real(coefficients[last]), other = real(coefficients[last - 1]);
  for (std::size_t i = last; i >= 2; i -= 2) {
    one = fused(one, square, real(coefficients[i - 2]));
    if (i >= 3) other = fused(other, square, real(coefficients[i - 3]));
  }
  return last % 2 == 0 ? fused(other, x, one) : fused(one, x, other);
}

// Guesses of x^(-1/3), of numbers from 0.008 to 8, right to 1e-4: from the float's exponent, to 4
// %, then the first terms of y (1 - h)^(-1/3), with h = 1 - x y³ of that guess. `magic` makes the
// error least.
template <class D> HWY_INLINE hn::Vec<D> inverse_cube_root_guess(D d, hn::Vec<D> x) {
  const hn::RebindToSigned<D> di;
  const auto set = [&](double value) HWY_ATTR { return hn::Set(d, static_cast<float>(value)); };
  constexpr float magic = 1419917108.0f;
  const auto exponent = hn::ConvertTo(d, hn::BitCast(di, x));
  const auto guess = hn::BitCast(
      d, hn::ConvertTo(di, hn::Sub(hn::Set(d, magic), hn::Mul(exponent, set(1.0 / 3)))));
  const auto cube = hn::Mul(hn::Mul(guess, guess), guess);
  const auto rest = hn::Sub(set(1), hn::Mul(x, cube));
  auto series = hn::Add(set(2.0 / 9), hn::Mul(rest, set(14.0 / 81)));
  series = hn::Mul(rest, hn::Add(set(1.0 / 3), hn::Mul(rest, series)));
  return hn::Add(guess, hn::Mul(guess, series));
}

// The cube root of x, from such a guess: x y² (1 - h)^(-2/3), of which the first terms are enough.
HWY_INLINE R cube_root(R x, R guess) {
  const R root = hn::Mul(x, hn::Mul(guess, guess));
  const R h = fused(hn::Neg(root), guess, real(1));
  const R series = fused(h, fused(h, real(40.0 / 81), real(5.0 / 9)), real(2.0 / 3));
  return fused(hn::Mul(root, h), series, root);
}

// x to the power of 2.4, of numbers from 4/45 to 2.4, which are multiplied by 3 until they are
// above 0.8.
HWY_INLINE R power_2_4(R x) {
  constexpr double kPower[] = {0x1.8b74ae0615a2cp+1, 0x1.28978284c5420p+2, 0x1.0384923440970p+1,
      0x1.5a06170490b8dp-3, -0x1.03849b495de93p-6, 0x1.9f3ec7eb03617p-9, -0x1.c1c4ed52f2140p-11,
      0x1.2064e4994f90dp-12, -0x1.a26b4814fd594p-14, 0x1.5591810345a41p-15, -0x1.dd7a8580dc119p-17,
      0x1.eb707658a7f94p-19, -0x1.4fb8c71f53f35p-18, 0x1.da703dae21ebdp-19};
  constexpr double kOfThird = 0x1.25455823ac015p-4, kOfNinth = 0x1.4ff7ce8a494e5p-8;
  const auto is_small = hn::Lt(x, real(0.8)), is_tiny = hn::Lt(x, real(0.8 / 3));
  const auto choose = [&](double ninth, double third) HWY_ATTR {  // by bits, as in negated_if()
    const R small = hn::IfThenElseZero(is_small, hn::Xor(real(1), real(third)));
    const R tiny = hn::IfThenElseZero(is_tiny, hn::Xor(real(third), real(ninth)));
    return hn::Xor(real(1), hn::Xor(small, tiny));
  };
  const R from_centre = fused(x, choose(9, 3), real(-1.6));
  return hn::Mul(polynomial(from_centre, kPower), choose(kOfNinth, kOfThird));
}

// The sine of angles from -π/2 to π/2.
HWY_INLINE R sine(R angle) {
  constexpr double kSine[] = {0x1.ffffffff0feeap-1, -0x1.5555552a7f371p-3, 0x1.11110859db55ep-7,
      -0x1.a016f786f2f47p-13, 0x1.715a2c903eb2ep-19, -0x1.98cc1eb7708dap-26};
  return hn::Mul(angle, polynomial(hn::Mul(angle, angle), kSine));
}

struct SineCosine {
  R sine, cosine;
};

// Sine and cosine of angles up to a few turns.
HWY_INLINE SineCosine sine_cosine(R angle) {
  constexpr double kSine[] = {0x1.ffffffffcd123p-1, -0x1.5555553b2dd7ep-3, 0x1.11110221ddfc9p-7,
      -0x1.a00c1c8e295b5p-13, 0x1.6c364900352a1p-19};
  constexpr double kCosine[] = {0x1.ffffffff97c39p-1, -0x1.ffffffbdee943p-2, 0x1.55553a875a6f2p-5,
      -0x1.6c078624ae451p-10, 0x1.9906ffcbbed0dp-16};
  // A number so large has no fraction, and ends in the bits of the whole number added.
  const R magic = real(0x1.8p52);
  const R shifted = hn::Add(hn::Mul(angle, real(2 / std::numbers::pi)), magic);
  const R quarters = hn::Sub(shifted, magic);
  const R rest = fused(quarters, real(-std::numbers::pi / 2), angle);
  const R square = hn::Mul(rest, rest);
  const R of_rest = hn::Mul(rest, polynomial(square, kSine)), cosine = polynomial(square, kCosine);
  // In quarter 4n + k: sine, cosine, -sine, -cosine for k = 0…3.
  const Real d;
  const hn::RebindToUnsigned<Real> d64;
  const auto k = hn::BitCast(d64, shifted);
  // -1 or 1, since -0 is not below 0.
  const R odd = hn::Or(hn::BitCast(d, hn::ShiftLeft<63>(k)), real(1));
  const auto negated = [&](R x, hn::Vec<decltype(d64)> by_second_bit) HWY_ATTR {
    const R sign = hn::BitCast(d, hn::ShiftLeft<62>(by_second_bit));
    return hn::Xor(x, hn::And(sign, real(-0.0)));
  };
  return {negated(hn::IfNegativeThenElse(odd, cosine, of_rest), k),
      negated(hn::IfNegativeThenElse(odd, of_rest, cosine), hn::Add(k, hn::Set(d64, 1)))};
}

// The angle of (x, y), from -π to π; anything where both are 0.
HWY_INLINE R angle_of(R y, R x) {
  constexpr double kArc[] = {0x1.fffffffef34c4p-1, -0x1.555553551963bp-2, 0x1.99988df661235p-3,
      -0x1.2473d66242ab9p-3, 0x1.c38b8d730303ap-4, -0x1.5736f6ad96f12p-4, 0x1.764c40c5d4cc5p-5};
  constexpr double pi = std::numbers::pi, steepest = 0.41421356237309503;  // tan(π/8)
  const R size_x = hn::Abs(x), size_y = hn::Abs(y);
  const R small = hn::Min(size_x, size_y), large = hn::Max(size_x, size_y);
  const auto is_steep = hn::Gt(small, hn::Mul(real(steepest), large));
  // Beyond π/8, the angle to the diagonal.
  const R upper = hn::IfThenElse(is_steep, hn::Sub(small, large), small);
  const R lower = hn::IfThenElse(is_steep, hn::Add(small, large), large);
  const R slope = hn::Div(upper, lower);
  R angle = hn::Mul(slope, polynomial(hn::Mul(slope, slope), kArc));
  angle = hn::Add(angle, hn::IfThenElseZero(is_steep, real(pi / 4)));
  const auto is_upright = hn::Gt(size_y, size_x), is_left = hn::Lt(x, real(0));
  angle = hn::Add(hn::IfThenElseZero(is_upright, real(pi / 2)), negated_if(is_upright, angle));
  angle = hn::Add(hn::IfThenElseZero(is_left, real(pi)), negated_if(is_left, angle));
  return negated_if(hn::Lt(y, real(0)), angle);
}

// e to the power of numbers from -200 to 0.
HWY_INLINE R exponential(R x) {
  constexpr double kPowers[] = {0x1.ffffffffa70cep-1, 0x1.ffffffffb0f36p-1, 0x1.0000005c8ddadp-1,
      0x1.555555c66e899p-3, 0x1.5554649b71876p-5, 0x1.11105b36733d3p-7, 0x1.6da756e909d8ep-10,
      0x1.a1d70edf23d77p-13};
  const Real d;
  const hn::RebindToSigned<Real> di;
  const hn::Rebind<std::int32_t, Real> narrow;
  const R doublings = hn::Round(hn::Mul(x, real(std::numbers::log2e)));
  const R rest = fused(doublings, real(-std::numbers::ln2), x);
  const auto exponent = hn::PromoteTo(di, hn::DemoteTo(narrow, doublings));
  const auto factor = hn::ShiftLeft<52>(hn::Add(exponent, hn::Set(di, 1023)));
  return hn::Mul(polynomial(rest, kPowers), hn::BitCast(d, factor));
}

}  // namespace similis::vmaf_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SIMILIS_VMAF_CIEDE_FUNCTIONS_INL_H
