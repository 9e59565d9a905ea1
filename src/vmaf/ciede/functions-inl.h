// SPDX-License-Identifier: Apache-2.0
// Roots, angles and exponentials of vectors of doubles, right to about 1e-10, a hundredth of what
// moves a float. They multiply and add without fusing, so that every target has the same bits.
// Included once per SIMD target, hence the guard that flips.
#if defined(SIMILIS_VMAF_CIEDE_FUNCTIONS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_VMAF_CIEDE_FUNCTIONS_INL_H
#undef SIMILIS_VMAF_CIEDE_FUNCTIONS_INL_H
#else
#define SIMILIS_VMAF_CIEDE_FUNCTIONS_INL_H
#endif

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

template <std::size_t count> HWY_INLINE R polynomial(R x, const double (&coefficients)[count]) {
  R sum = real(coefficients[count - 1]);
  for (std::size_t i = count - 1; i-- > 0;) sum = hn::Add(hn::Mul(sum, x), real(coefficients[i]));
  return sum;
}

// x to the power of -1/n, of numbers from 0.008 to 4: a guess from the float's exponent, good to 4
// %, then a step in floats and one in doubles. With h = 1 - x yⁿ the power is y (1 - h)^(-1/n), of
// which a step takes the first terms; it does not divide. `magic` makes the error after the first
// step least: 1e-4.
template <int n> HWY_INLINE R inverse_root(R x, float magic) {
  const Real d;
  const hn::Rebind<float, Real> df;
  const hn::Rebind<std::int32_t, Real> di;
  constexpr double first = 1.0 / n, second = (n + 1) / (2.0 * n * n);
  constexpr double third = (n + 1) * (2 * n + 1) / (6.0 * n * n * n);
  const auto power = [](auto y) HWY_ATTR {
    const auto square = hn::Mul(y, y);
    return n == 3 ? hn::Mul(square, y) : hn::Mul(hn::Mul(square, square), y);
  };
  const auto set = [&](double value) HWY_ATTR { return hn::Set(df, static_cast<float>(value)); };
  const auto narrow = hn::DemoteTo(df, x);
  const auto exponent = hn::ConvertTo(df, hn::BitCast(di, narrow));
  const auto guess = hn::BitCast(
      df, hn::ConvertTo(di, hn::Sub(hn::Set(df, magic), hn::Mul(exponent, set(first)))));
  const auto rest = hn::Sub(set(1), hn::Mul(narrow, power(guess)));
  auto series = hn::Add(set(second), hn::Mul(rest, set(third)));
  series = hn::Mul(rest, hn::Add(set(first), hn::Mul(rest, series)));
  const R y = hn::PromoteTo(d, hn::Add(guess, hn::Mul(guess, series)));
  const R h = hn::Sub(real(1), hn::Mul(x, power(y)));
  return hn::Add(y, hn::Mul(hn::Mul(y, h), hn::Add(real(first), hn::Mul(h, real(second)))));
}

HWY_INLINE R cube_root(R x) {
  const R y = inverse_root<3>(x, 1419917108.0f);
  return hn::Mul(x, hn::Mul(y, y));
}

// x to the power of 2.4: (x y²)⁴ with y that of -1/5.
HWY_INLINE R power_2_4(R x) {
  const R y = inverse_root<5>(x, 1277931551.0f);
  const R root = hn::Mul(x, hn::Mul(y, y)), square = hn::Mul(root, root);
  return hn::Mul(square, square);
}

// Of angles up to some turns.
HWY_INLINE R sine(R angle) {
  constexpr double kSine[] = {0x1.ffffffff0feeap-1, -0x1.5555552a7f371p-3, 0x1.11110859db55ep-7,
      -0x1.a016f786f2f47p-13, 0x1.715a2c903eb2ep-19, -0x1.98cc1eb7708dap-26};  // to π/2
  constexpr double pi = std::numbers::pi;
  const R halves = hn::Round(hn::Mul(angle, real(1 / pi)));
  const R rest = hn::Sub(angle, hn::Mul(halves, real(pi)));
  const R of_rest = hn::Mul(rest, polynomial(hn::Mul(rest, rest), kSine));
  const R half = hn::Mul(halves, real(0.5));
  return hn::IfThenElse(hn::Eq(half, hn::Floor(half)), of_rest, hn::Neg(of_rest));
}

struct SineCosine {
  R sine, cosine;
};

// These take angles up to some turns.
HWY_INLINE SineCosine sine_cosine(R angle) {
  constexpr double kSine[] = {0x1.ffffffffcd123p-1, -0x1.5555553b2dd7ep-3, 0x1.11110221ddfc9p-7,
      -0x1.a00c1c8e295b5p-13, 0x1.6c364900352a1p-19};
  constexpr double kCosine[] = {0x1.ffffffff97c39p-1, -0x1.ffffffbdee943p-2, 0x1.55553a875a6f2p-5,
      -0x1.6c078624ae451p-10, 0x1.9906ffcbbed0dp-16};
  const R quarters = hn::Round(hn::Mul(angle, real(2 / std::numbers::pi)));
  const R rest = hn::Sub(angle, hn::Mul(quarters, real(std::numbers::pi / 2)));
  const R square = hn::Mul(rest, rest);
  const R of_rest = hn::Mul(rest, polynomial(square, kSine)), cosine = polynomial(square, kCosine);
  // In quarter 4n + k: sine, cosine, -sine, -cosine for k = 0…3.
  const R k = hn::Sub(quarters, hn::Mul(real(4), hn::Floor(hn::Mul(quarters, real(0.25)))));
  const auto is_odd = hn::Or(hn::Eq(k, real(1)), hn::Eq(k, real(3)));
  const auto is_below = hn::Ge(k, real(2));
  const auto is_left = hn::Or(hn::Eq(k, real(1)), hn::Eq(k, real(2)));
  const R of_sine = hn::IfThenElse(is_odd, cosine, of_rest);
  const R of_cosine = hn::IfThenElse(is_odd, of_rest, cosine);
  return {hn::IfThenElse(is_below, hn::Neg(of_sine), of_sine),
      hn::IfThenElse(is_left, hn::Neg(of_cosine), of_cosine)};
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
  angle = hn::IfThenElse(hn::Gt(size_y, size_x), hn::Sub(real(pi / 2), angle), angle);
  angle = hn::IfThenElse(hn::Lt(x, real(0)), hn::Sub(real(pi), angle), angle);
  return hn::IfThenElse(hn::Lt(y, real(0)), hn::Neg(angle), angle);
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
  const R rest = hn::Sub(x, hn::Mul(doublings, real(std::numbers::ln2)));
  const auto exponent = hn::PromoteTo(di, hn::DemoteTo(narrow, doublings));
  const auto factor = hn::ShiftLeft<52>(hn::Add(exponent, hn::Set(di, 1023)));
  return hn::Mul(polynomial(rest, kPowers), hn::BitCast(d, factor));
}

}  // namespace similis::vmaf_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SIMILIS_VMAF_CIEDE_FUNCTIONS_INL_H
