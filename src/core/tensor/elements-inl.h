// SPDX-License-Identifier: Apache-2.0
// Vectors of f32 from neighbouring elements in f32, f16 or bf16, and back: load() and store() of
// each lane. Included once per SIMD target, hence the guard that flips.
#if defined(SIMILIS_CORE_TENSOR_ELEMENTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_CORE_TENSOR_ELEMENTS_INL_H
#undef SIMILIS_CORE_TENSOR_ELEMENTS_INL_H
#else
#define SIMILIS_CORE_TENSOR_ELEMENTS_INL_H
#endif

#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "src/core/tensor/convert.h"

HWY_BEFORE_NAMESPACE();
namespace similis::core_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_NATIVE_FMA  // these targets convert f16 in one instruction
template <class E> HWY_INLINE hn::Vec<hn::ScalableTag<float>> load_elements(const E* from) {
  const hn::ScalableTag<float> d;
  if constexpr (std::is_same_v<E, F16>) {
    const hn::Rebind<hwy::float16_t, decltype(d)> d16;
    return hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(from)));
  } else if constexpr (std::is_same_v<E, BF16>) {
    const hn::Rebind<std::uint16_t, decltype(d)> d16;
    const hn::RebindToUnsigned<decltype(d)> du;
    const auto bits =
        hn::PromoteTo(du, hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(from)));
    return hn::BitCast(d, hn::ShiftLeft<16>(bits));
  } else {
    return hn::LoadU(d, from);
  }
}

template <class E> HWY_INLINE void store_elements(hn::Vec<hn::ScalableTag<float>> v, E* to) {
  const hn::ScalableTag<float> d;
  if constexpr (std::is_same_v<E, F16>) {
    const hn::Rebind<hwy::float16_t, decltype(d)> d16;
    hn::StoreU(hn::DemoteTo(d16, v), d16, reinterpret_cast<hwy::float16_t*>(to));
  } else if constexpr (std::is_same_v<E, BF16>) {
    const hn::RebindToUnsigned<decltype(d)> du;
    const hn::RebindToSigned<decltype(d)> di;
    const hn::Rebind<std::uint16_t, decltype(d)> d16;
    const auto bits = hn::BitCast(du, v), high = hn::ShiftRight<16>(bits);
    const auto odd = hn::And(high, hn::Set(du, 1));
    const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(du, 0x7fff)), odd));
    const auto quiet = hn::Or(high, hn::Set(du, 0x40));
    const auto is_nan = hn::RebindMask(du, hn::IsNaN(v));
    const auto result = hn::BitCast(di, hn::IfThenElse(is_nan, quiet, rounded));
    hn::StoreU(hn::DemoteTo(d16, result), d16, reinterpret_cast<std::uint16_t*>(to));
  } else {
    hn::StoreU(v, d, to);
  }
}
#endif

/// out[i] = in[i·stride] for i < count.
template <class E>
void widen(
    const E* HWY_RESTRICT in, std::int64_t stride, std::int64_t count, float* HWY_RESTRICT out) {
  std::int64_t i = 0;
#if HWY_NATIVE_FMA
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (; stride == 1 && i + lanes <= count; i += lanes) {
    hn::StoreU(load_elements(in + i), d, out + i);
  }
#endif
  for (; i < count; ++i) out[i] = load(in[i * stride]);
}

/// out[i·stride] = in[i], rounded to nearest, for i < count.
template <class E>
void narrow(
    const float* HWY_RESTRICT in, std::int64_t count, E* HWY_RESTRICT out, std::int64_t stride) {
  std::int64_t i = 0;
#if HWY_NATIVE_FMA
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (; stride == 1 && i + lanes <= count; i += lanes) {
    store_elements(hn::LoadU(d, in + i), out + i);
  }
#endif
  for (; i < count; ++i) store(in[i], out + i * stride);
}

}  // namespace similis::core_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
