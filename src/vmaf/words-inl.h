// SPDX-License-Identifier: Apache-2.0
// Arithmetic on 32-bit lanes that hold two 16-bit halves, for the filters of VMAF's features.
// Included once per SIMD target, hence the guard that flips.
#if defined(SIMILIS_VMAF_WORDS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_VMAF_WORDS_INL_H
#undef SIMILIS_VMAF_WORDS_INL_H
#else
#define SIMILIS_VMAF_WORDS_INL_H
#endif

#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace similis::vmaf_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// sum + the products of both signed halves of a and b, modulo 2^32. On x86 Highway's operation adds
// neighbouring products; it may do otherwise elsewhere, and one lane has no neighbours. is_fused:
// by AVX-512 VNNI, which not every processor with AVX-512 has and Highway 1.0.3 knows nothing of.
template <bool is_fused = false, class D>
HWY_INLINE hn::Vec<D> add_products(D d, hn::Vec<D> sum, hn::Vec<D> a, hn::Vec<D> b) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (is_fused) {
    asm("vpdpwssd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
    return sum;
  }
#endif
  const hn::RebindToSigned<D> di;
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  const hn::Repartition<std::int16_t, D> d16;
  auto none = hn::Zero(di);
  return hn::BitCast(d, hn::ReorderWidenMulAccumulate(di, hn::BitCast(d16, a), hn::BitCast(d16, b),
                            hn::BitCast(di, sum), none));
#else
  const auto low = [&](hn::Vec<D> v) {
    return hn::BitCast(d, hn::ShiftRight<16>(hn::BitCast(di, hn::ShiftLeft<16>(v))));
  };
  const auto high = [&](hn::Vec<D> v) {
    return hn::BitCast(d, hn::ShiftRight<16>(hn::BitCast(di, v)));
  };
  return hn::Add(sum, hn::Add(hn::Mul(low(a), low(b)), hn::Mul(high(a), high(b))));
#endif
}

// The lower halves of even and odd in one word, even's below; and the upper halves.
template <class D> HWY_INLINE hn::Vec<D> lower_halves(D d, hn::Vec<D> even, hn::Vec<D> odd) {
  return hn::Or(hn::And(even, hn::Set(d, 0xffffu)), hn::ShiftLeft<16>(odd));
}
template <class D> HWY_INLINE hn::Vec<D> upper_halves(D d, hn::Vec<D> even, hn::Vec<D> odd) {
  return hn::Or(hn::ShiftRight<16>(even), hn::And(odd, hn::Set(d, 0xffff0000u)));
}

// The lower, or the upper, 16 bits of the products of unsigned halves.
template <class D> HWY_INLINE hn::Vec<D> multiply_low(D d, hn::Vec<D> a, hn::Vec<D> b) {
#if HWY_TARGET != HWY_SCALAR
  const hn::Repartition<std::uint16_t, D> d16;
  return hn::BitCast(d, hn::Mul(hn::BitCast(d16, a), hn::BitCast(d16, b)));
#else
  const auto mask = hn::Set(d, 0xffffu);
  return lower_halves(d, hn::Mul(hn::And(a, mask), hn::And(b, mask)),
      hn::Mul(hn::ShiftRight<16>(a), hn::ShiftRight<16>(b)));
#endif
}
template <class D> HWY_INLINE hn::Vec<D> multiply_high(D d, hn::Vec<D> a, hn::Vec<D> b) {
#if HWY_TARGET != HWY_SCALAR
  const hn::Repartition<std::uint16_t, D> d16;
  return hn::BitCast(d, hn::MulHigh(hn::BitCast(d16, a), hn::BitCast(d16, b)));
#else
  const auto mask = hn::Set(d, 0xffffu);
  return upper_halves(d, hn::Mul(hn::And(a, mask), hn::And(b, mask)),
      hn::Mul(hn::ShiftRight<16>(a), hn::ShiftRight<16>(b)));
#endif
}

// Two rows of words as pairs of rows, of even columns and then of odd ones.
template <class D>
HWY_INLINE void store_pairs(
    D d, hn::Vec<D> upper, hn::Vec<D> lower, std::uint32_t* HWY_RESTRICT to) {
  hn::Store(lower_halves(d, upper, lower), d, to);
  hn::Store(upper_halves(d, upper, lower), d, to + hn::Lanes(d));
}

// a·b / 2^32, rounded to nearest.
template <class D>
HWY_INLINE hn::Vec<D> rounded_high_product([[maybe_unused]] D d, hn::Vec<D> a, hn::Vec<D> b) {
#if HWY_TARGET != HWY_SCALAR
  const hn::Repartition<std::uint64_t, D> d64;
  const auto half = hn::Set(d64, std::uint64_t{1} << 31);
  const auto even = hn::Add(hn::MulEven(a, b), half);
  const auto a_odd = hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(d64, a)));
  const auto b_odd = hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(d64, b)));
  const auto odd = hn::Add(hn::MulEven(a_odd, b_odd), half);
  return hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
#else
  const std::uint64_t product = std::uint64_t{hn::GetLane(a)} * hn::GetLane(b);
  return hn::Set(d, static_cast<std::uint32_t>((product + (std::uint64_t{1} << 31)) >> 32));
#endif
}

// a·b of lanes of 64 bits whose upper halves are their lower ones' extension.
template <class D>
HWY_INLINE hn::Vec<D> narrow_product([[maybe_unused]] D d, hn::Vec<D> a, hn::Vec<D> b) {
#if HWY_TARGET != HWY_SCALAR
  using Half = std::conditional_t<hwy::IsSigned<hn::TFromD<D>>(), std::int32_t, std::uint32_t>;
  const hn::Repartition<Half, D> d32;
  return hn::MulEven(hn::BitCast(d32, a), hn::BitCast(d32, b));
#else
  return hn::Set(d, hn::GetLane(a) * hn::GetLane(b));
#endif
}

// The upper 32 bits of doubles.
template <class D>
HWY_INLINE void store_high_words(D /*d*/, hn::Vec<D> values, std::uint32_t* HWY_RESTRICT to) {
  const hn::RebindToUnsigned<D> d64;
  const hn::Rebind<std::uint32_t, D> d32;
  hn::StoreU(hn::TruncateTo(d32, hn::ShiftRight<32>(hn::BitCast(d64, values))), d32, to);
}

template <class D> HWY_INLINE std::int64_t sum_of_lanes(D d, hn::Vec<D> v) {
  HWY_ALIGN hn::TFromD<D> lanes[HWY_MAX_BYTES / sizeof(hn::TFromD<D>)];
  hn::Store(v, d, lanes);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) sum += static_cast<std::int64_t>(lanes[i]);
  return sum;
}

}  // namespace similis::vmaf_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SIMILIS_VMAF_WORDS_INL_H
