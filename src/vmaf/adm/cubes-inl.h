// SPDX-License-Identifier: Apache-2.0
// The sums of cubes of ADM's rows. Included once per SIMD target, hence the guard that flips.
#if defined(SIMILIS_VMAF_ADM_CUBES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_VMAF_ADM_CUBES_INL_H
#undef SIMILIS_VMAF_ADM_CUBES_INL_H
#else
#define SIMILIS_VMAF_ADM_CUBES_INL_H
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "src/vmaf/adm/plan.h"
#include "src/vmaf/adm/wavelet-inl.h"
#include "src/vmaf/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::vmaf_internal::HWY_NAMESPACE {

// Columns first to last of a row.
struct Span {
  std::int64_t first, last;
};

using D32 = hn::ScalableTag<std::uint32_t>;
using I32 = hn::RebindToSigned<D32>;
using V32 = hn::Vec<D32>;
using N = hn::Vec<I32>;
using W = hn::Vec<Wide>;
inline std::int64_t lanes_of_32() { return static_cast<std::int64_t>(hn::Lanes(D32())); }

// |R(factor·m, 28)|
HWY_INLINE V32 weighted_size(N m, N factor) {
  return hn::BitCast(D32(), hn::Abs(rounded_product_28(I32(), m, factor)));
}
// (v + half) / 2^shift, cut off.
struct Rounding {
  Rounding(std::uint64_t of_half, int shift) : half(loaded(hn::Set(Wide(), of_half))), by(shift) {}
  static Rounding to_nearest(int shift) {
    return {shift > 0 ? std::uint64_t{1} << (shift - 1) : 0, shift};
  }
  HWY_INLINE W operator()(W v) const { return by.right(hn::Add(v, half)); }
  W half;
  VectorShift<Wide> by;
};

// z of values without a sign, whose square and cube are rounded: R(R(z²)·z). Products take the
// lower halves of lanes of 64 bits, whatever the upper ones are.
HWY_INLINE W rounded_cubes(V32 z, const Rounding& of_square, const Rounding& of_cube) {
  return sum_of_lower_halves(D32(), z, [&](W wide) HWY_ATTR {
    return of_cube(narrow_product(of_square(narrow_product(wide, wide)), wide));
  });
}

// The column of a span's first vector, which begins with a line of the cache.
inline std::int64_t first_vector(Span span) { return span.first / lanes_of_32() * lanes_of_32(); }

// Lanes of columns from x on that are in the span.
HWY_INLINE hn::Mask<D32> within(Span span, std::int64_t x) {
  const auto first = [&](std::int64_t columns) HWY_ATTR {
    return hn::FirstN(
        D32(), static_cast<std::size_t>(std::clamp<std::int64_t>(columns - x, 0, lanes_of_32())));
  };
  return hn::And(first(span.last), hn::Not(first(span.first)));
}

// The sum of cubes_of(size_at(x)) of a row, where the cubes of zeros are 0.
template <class SizeAt, class CubesOf>
HWY_INLINE std::int64_t sum_of_cubes(Span span, const SizeAt& size_at, const CubesOf& cubes_of) {
  W sum = hn::Zero(Wide());
  std::int64_t x = first_vector(span);
  const auto add_part = [&]() HWY_ATTR {
    sum = hn::Add(sum, cubes_of(hn::IfThenElseZero(within(span, x), size_at(x))));
    x += lanes_of_32();
  };
  if (x < span.first) add_part();
  for (; x + lanes_of_32() <= span.last; x += lanes_of_32()) {
    sum = hn::Add(sum, cubes_of(size_at(x)));
  }
  if (x < span.last) add_part();
  return sum_of_lanes(Wide(), sum);
}

// Σ |o|³ of a row, with its roundings. Samples need no roundings, and their squares have 31 bits.
template <bool is_deep>
std::int64_t reference_cubes(
    const Coefficient* HWY_RESTRICT o, const AdmShifts& shifts, Span span) {
  const auto size_at = [&](std::int64_t x) HWY_ATTR {
    return hn::BitCast(D32(), hn::Abs(hn::LoadU(I32(), o + x)));
  };
  if constexpr (is_deep) {
    const Rounding of_square(std::uint64_t{1} << shifts.cube, shifts.cube);
    const Rounding of_cube = Rounding::to_nearest(shifts.column);
    return sum_of_cubes(
        span, size_at, [&](V32 z) HWY_ATTR { return rounded_cubes(z, of_square, of_cube); });
  } else {
    return sum_of_cubes(
        span, size_at, [&](V32 z) HWY_ATTR { return sum_of_products(D32(), hn::Mul(z, z), z); });
  }
}

// Σ z³ of a row of a band, with its roundings. Values of samples have 32 bits without a sign, their
// thresholds `threshold_shift` less.
template <bool is_deep>
std::int64_t masked_cubes(const Coefficient* HWY_RESTRICT values,
    const Coefficient* HWY_RESTRICT thresholds, std::int32_t factor, int threshold_shift,
    const AdmShifts& shifts, Span span) {
  const I32 d;
  const N factors = loaded(hn::Set(d, factor));
  const VectorShift<D32> by_threshold(threshold_shift);
  const auto size_at = [&](std::int64_t x) HWY_ATTR {
    const N value = hn::LoadU(d, values + x), threshold = hn::LoadU(d, thresholds + x);
    if constexpr (is_deep) {
      const N size = hn::BitCast(d, weighted_size(value, factors));
      return hn::BitCast(D32(), hn::Max(hn::Zero(d), hn::Sub(size, threshold)));
    } else {
      const V32 size = hn::BitCast(D32(), hn::Mul(hn::Abs(value), factors));
      const V32 least = by_threshold.left(hn::BitCast(D32(), threshold));
      return hn::Sub(hn::Max(size, least), least);
    }
  };
  const auto of_square = Rounding::to_nearest(shifts.cube);
  const auto of_cube = Rounding::to_nearest(shifts.column);
  return sum_of_cubes(
      span, size_at, [&](V32 z) HWY_ATTR { return rounded_cubes(z, of_square, of_cube); });
}

}  // namespace similis::vmaf_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SIMILIS_VMAF_ADM_CUBES_INL_H
