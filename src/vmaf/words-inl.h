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
#elif HWY_TARGET == HWY_AVX2
  // In place: GCC 12 copies each sum to another register and back in loops over pairs.
  const hn::RebindToSigned<D> i32;
  const hn::Repartition<std::int16_t, D> i16;
  auto both = hn::Zero(i32);
  both = hn::ReorderWidenMulAccumulate(i32, hn::BitCast(i16, a), hn::BitCast(i16, b), both, both);
  asm("vpaddd %1, %0, %0" : "+x"(sum.raw) : "x"(both.raw));
  return sum;
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

// The products of the lower halves of signed numbers, of 16 bits each, where b's upper halves are
// 0. On Intel's processors it takes one operation, and a product of 32 bits two.
template <class V> HWY_INLINE V lower_product(V a, V b) {
#if HWY_TARGET != HWY_SCALAR
  const hn::DFromV<V> di;
  const hn::RebindToUnsigned<decltype(di)> d;
  return hn::BitCast(di, add_products(d, hn::Zero(d), hn::BitCast(d, a), hn::BitCast(d, b)));
#else
  return hn::Mul(hn::ShiftRight<16>(hn::ShiftLeft<16>(a)), b);
#endif
}

// v, which is then in a register. Otherwise GCC 12 makes its load part of each instruction that
// uses it; on AVX2 two loads a product cost 7 % of VIF, where lines of the cache are crossed.
template <class V> HWY_INLINE V loaded(V v) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  asm("" : "+v"(v.raw));
#endif
  return v;
}

// Shifts by a number of bits that is no constant. On AVX2 and AVX-512 it is a vector in a register,
// where GCC 12 otherwise moves the number into one for each shift; on Intel's processors such a
// shift takes one operation, and that by one number two.
template <class D> class VectorShift {
  using V = hn::Vec<D>;

 public:
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  explicit VectorShift(int bits) : bits_(loaded(hn::Set(D(), static_cast<hn::TFromD<D>>(bits)))) {}
  HWY_INLINE V left(V v) const { return hn::Shl(v, bits_); }
  HWY_INLINE V right(V v) const { return hn::Shr(v, bits_); }

 private:
  V bits_;
#else
  explicit VectorShift(int bits) : bits_(bits) {}
  HWY_INLINE V left(V v) const { return hn::ShiftLeftSame(v, bits_); }
  HWY_INLINE V right(V v) const { return hn::ShiftRightSame(v, bits_); }

 private:
  int bits_;
#endif
};

// The lower halves of even and odd in one word, even's below; and the upper halves.
template <class D> HWY_INLINE hn::Vec<D> lower_halves(D d, hn::Vec<D> even, hn::Vec<D> odd) {
#if HWY_TARGET != HWY_SCALAR
  const hn::Repartition<std::uint16_t, D> d16;
  return hn::BitCast(
      d, hn::OddEven(hn::BitCast(d16, hn::ShiftLeft<16>(odd)), hn::BitCast(d16, even)));
#else
  return hn::Or(hn::And(even, hn::Set(d, 0xffffu)), hn::ShiftLeft<16>(odd));
#endif
}
template <class D> HWY_INLINE hn::Vec<D> upper_halves(D d, hn::Vec<D> even, hn::Vec<D> odd) {
#if HWY_TARGET != HWY_SCALAR
  const hn::Repartition<std::uint16_t, D> d16;
  return hn::BitCast(
      d, hn::OddEven(hn::BitCast(d16, odd), hn::BitCast(d16, hn::ShiftRight<16>(even))));
#else
  return hn::Or(hn::ShiftRight<16>(even), hn::And(odd, hn::Set(d, 0xffff0000u)));
#endif
}

// The sums of halves, modulo 2^16.
template <class D> HWY_INLINE hn::Vec<D> add_halves(D d, hn::Vec<D> a, hn::Vec<D> b) {
#if HWY_TARGET != HWY_SCALAR
  const hn::Repartition<std::uint16_t, D> d16;
  return hn::BitCast(d, hn::Add(hn::BitCast(d16, a), hn::BitCast(d16, b)));
#else
  return lower_halves(d, hn::Add(a, b), hn::Add(hn::ShiftRight<16>(a), hn::ShiftRight<16>(b)));
#endif
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

// The upper halves of lanes of 64 bits: those of `even` in even lanes, those of `odd` in odd ones.
template <class D, class W>
HWY_INLINE hn::Vec<D> upper_words_of([[maybe_unused]] D d, W even, W odd) {
#if HWY_TARGET == HWY_AVX3
  return hn::Vec<D>{_mm512_mask_shuffle_epi32(odd.raw, 0x5555, even.raw, _MM_PERM_DDBB)};
#else
  return hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
#endif
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
  return upper_words_of(d, even, odd);
#else
  const std::uint64_t product = std::uint64_t{hn::GetLane(a)} * hn::GetLane(b);
  return hn::Set(d, static_cast<std::uint32_t>((product + (std::uint64_t{1} << 31)) >> 32));
#endif
}

// a·b / 2^28, rounded to nearest, of signed numbers: its lower 32 bits.
template <class D> HWY_INLINE hn::Vec<D> rounded_product_28(D d, hn::Vec<D> a, hn::Vec<D> b) {
#if HWY_TARGET != HWY_SCALAR
  const hn::Repartition<std::int64_t, D> d64;
  const hn::RebindToUnsigned<decltype(d64)> u64;
  const auto half = hn::Set(u64, std::uint64_t{1} << 27);
  const auto product = [&](hn::Vec<D> v, hn::Vec<D> w)
                           HWY_ATTR { return hn::Add(hn::BitCast(u64, hn::MulEven(v, w)), half); };
  const auto upper = [&](hn::Vec<D> v) HWY_ATTR {
    return hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(u64, v)));
  };
  const auto odd = hn::ShiftLeft<4>(product(upper(a), upper(b)));
  return hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<28>(product(a, b))));
#else
  const std::int64_t product = std::int64_t{hn::GetLane(a)} * hn::GetLane(b);
  return hn::Set(d, static_cast<std::int32_t>((product + (std::int64_t{1} << 27)) >> 28));
#endif
}

// Lanes of 64 bits, as many as a vector of 32 bits has in its even lanes.
using Wide = hn::ScalableTag<std::uint64_t>;

// f(of even lanes) + f(of odd lanes), where f takes the numbers as lower halves of lanes of 64
// bits, whose upper halves are anything.
template <class D, class F>
HWY_INLINE hn::Vec<Wide> sum_of_lower_halves([[maybe_unused]] D d, hn::Vec<D> values, F f) {
#if HWY_TARGET != HWY_SCALAR
  const auto both = hn::BitCast(Wide(), values);
  return hn::Add(f(both), f(hn::ShiftRight<32>(both)));
#else
  return f(hn::Set(Wide(), std::uint64_t{hn::GetLane(values)}));
#endif
}

// a·b of the lower halves of lanes of 64 bits.
HWY_INLINE hn::Vec<Wide> narrow_product(hn::Vec<Wide> a, hn::Vec<Wide> b) {
#if HWY_TARGET != HWY_SCALAR
  const hn::Repartition<std::uint32_t, Wide> d32;
  return hn::MulEven(hn::BitCast(d32, a), hn::BitCast(d32, b));
#else
  return hn::Set(Wide(), hn::GetLane(a) * hn::GetLane(b));
#endif
}

// The products of even lanes and of odd ones, added in 64 bits.
template <class D>
HWY_INLINE hn::Vec<Wide> sum_of_products([[maybe_unused]] D d, hn::Vec<D> a, hn::Vec<D> b) {
#if HWY_TARGET != HWY_SCALAR
  const auto odd = [](hn::Vec<D> v) HWY_ATTR { return hn::ShiftRight<32>(hn::BitCast(Wide(), v)); };
  return hn::Add(hn::MulEven(a, b), narrow_product(odd(a), odd(b)));
#else
  return hn::Set(Wide(), std::uint64_t{hn::GetLane(a)} * hn::GetLane(b));
#endif
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
