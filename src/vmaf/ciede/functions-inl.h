// SPDX-License-Identifier: Apache-2.0
// Roots, angles and exponentials of vectors of doubles, right to about 1e-13. They multiply and add
// without fusing, so that every target has the same bits. Included once per SIMD target, hence the
// guard that flips.
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

// A guess at a root, good to 3 %: of floats from 0.008 to 4, by their exponents. `magic` is
// what the exponent's bias leaves of that, less what makes the error least.
HWY_INLINE R guess_root(R x, float inverse, float magic) {
  const Real d;
  const hn::Rebind<float, Real> df;
  const hn::Rebind<std::int32_t, Real> di;
  const auto exponent = hn::ConvertTo(df, hn::BitCast(di, hn::DemoteTo(df, x)));
  const auto root = hn::Add(hn::Mul(exponent, hn::Set(df, inverse)), hn::Set(df, magic));
  return hn::PromoteTo(d, hn::BitCast(df, hn::ConvertTo(di, root)));
}

// Halley's steps leave the cube of an error: 3e-2, 3e-5, 1e-14.
HWY_INLINE R cube_root(R x) {
  R y = guess_root(x, 1 / 3.0f, 709953477.0f);
  for (int step = 0; step < 2; ++step) {
    const R cube = hn::Mul(hn::Mul(y, y), y);
    y = hn::Mul(y, hn::Div(hn::Add(hn::Add(x, x), cube), hn::Add(hn::Add(cube, cube), x)));
  }
  return y;
}

// x to the power of 2.4, as the square of x and of its fifth root.
HWY_INLINE R power_2_4(R x) {
  R y = guess_root(x, 0.2f, 851974572.0f);
  for (int step = 0; step < 2; ++step) {
    const R square = hn::Mul(y, y), fifth = hn::Mul(hn::Mul(square, square), y);
    const R upper = hn::Add(hn::Mul(real(2), fifth), hn::Mul(real(3), x));
    const R lower = hn::Add(hn::Mul(real(3), fifth), hn::Mul(real(2), x));
    y = hn::Mul(y, hn::Div(upper, lower));
  }
  const R product = hn::Mul(x, y);
  return hn::Mul(product, product);
}

struct SineCosine {
  R sine, cosine;
};

// These take angles up to some turns.
HWY_INLINE SineCosine sine_cosine(R angle) {
  constexpr double kSine[] = {0x1.fffffffffffffp-1, -0x1.5555555555688p-3, 0x1.111111112e2c1p-7,
      -0x1.a01a01d466affp-13, 0x1.71de61873f31dp-19, -0x1.ae7d2d99b6ddfp-26, 0x1.6573b1bc6fee4p-33};
  constexpr double kCosine[] = {0x1.0000000000002p+0, -0x1.0000000000142p-1, 0x1.5555555568c2fp-5,
      -0x1.6c16c178c1b4ep-10, 0x1.a01a075f8ec05p-16, -0x1.27e47f2b7ed0cp-22, 0x1.1ce43fe5750dep-29};
  const R quarters = hn::Round(hn::Mul(angle, real(2 / std::numbers::pi)));
  const R rest = hn::Sub(angle, hn::Mul(quarters, real(std::numbers::pi / 2)));
  const R square = hn::Mul(rest, rest);
  const R sine = hn::Mul(rest, polynomial(square, kSine)), cosine = polynomial(square, kCosine);
  // In quarter 4n + k: sine, cosine, -sine, -cosine for k = 0…3.
  const R k = hn::Sub(quarters, hn::Mul(real(4), hn::Floor(hn::Mul(quarters, real(0.25)))));
  const auto is_odd = hn::Or(hn::Eq(k, real(1)), hn::Eq(k, real(3)));
  const auto is_below = hn::Ge(k, real(2));
  const auto is_left = hn::Or(hn::Eq(k, real(1)), hn::Eq(k, real(2)));
  const R of_sine = hn::IfThenElse(is_odd, cosine, sine);
  const R of_cosine = hn::IfThenElse(is_odd, sine, cosine);
  return {hn::IfThenElse(is_below, hn::Neg(of_sine), of_sine),
      hn::IfThenElse(is_left, hn::Neg(of_cosine), of_cosine)};
}

// The angle of (x, y), from -π to π; anything where both are 0.
HWY_INLINE R angle_of(R y, R x) {
  constexpr double kArc[] = {0x1.fffffffffff12p-1, -0x1.55555554e5ec4p-2, 0x1.99999911bbee6p-3,
      -0x1.249229193dc01p-3, 0x1.c714d40b865d0p-4, -0x1.73d9cf411b90cp-4, 0x1.35ceff05cb9cep-4,
      -0x1.e13c353670637p-5, 0x1.f65d081d22672p-6};
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
  constexpr double kPowers[] = {0x1.000000000003cp+0, 0x1.fffffffffffd0p-1, 0x1.ffffffffe710dp-2,
      0x1.5555555553376p-3, 0x1.555555891c7afp-5, 0x1.11111121acf4bp-7, 0x1.6c162af76c3acp-10,
      0x1.a01997b6b78cbp-13, 0x1.a17ed26da1fdbp-16, 0x1.72df8ac162151p-19};
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
