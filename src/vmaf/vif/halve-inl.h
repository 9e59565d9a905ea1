// SPDX-License-Identifier: Apache-2.0
// A row of VIF's next scale, in vectors. Included once per SIMD target, hence the guard that flips.
#if defined(SIMILIS_VMAF_VIF_HALVE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_VMAF_VIF_HALVE_INL_H
#undef SIMILIS_VMAF_VIF_HALVE_INL_H
#else
#define SIMILIS_VMAF_VIF_HALVE_INL_H
#endif

#include <array>
#include <cstdint>

#include "src/vmaf/vif/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::vmaf_internal::HWY_NAMESPACE {

// The pairs of rows of one image that a window of scale `scale` - 1 sees.
template <int scale> using PairsOfRows = std::array<const Word*, kVifPairs[scale - 1]>;

// Even rows of scale `scale` - 1, filtered down. words: those of the tile. shift: what sums are
// divided by. is_narrow: samples are bytes, not halves about the middle.
template <int scale, bool is_narrow, bool is_fused>
void halve_down(const PairsOfRows<scale>& rows, std::size_t words, int shift, RowOfWords& down) {
  const hn::ScalableTag<Word> d;
  using V = hn::Vec<decltype(d)>;
  constexpr std::size_t pairs = kVifPairs[scale], skipped = (kVifPairs[scale - 1] - pairs) / 2;
  constexpr Word bias = 0x80008000u, whole = 0x80000000u;
  const VectorShift<decltype(d)> by(shift);
  V taps[pairs];
  for (std::size_t j = 0; j < pairs; ++j) taps[j] = hn::Set(d, kVifTapPairs[scale].even[j]);
  for (std::size_t i = 0; i < words; i += hn::Lanes(d)) {
    V even = hn::Set(d, (is_narrow ? 0 : whole) + (Word{1} << (shift - 1))), odd = even;
    for (std::size_t j = 0; j < pairs; ++j) {
      const Word* pair = rows[skipped + j] + 2 * i;
      even = add_products<is_fused>(d, even, hn::Load(d, pair), taps[j]);
      odd = add_products<is_fused>(d, odd, hn::Load(d, pair + hn::Lanes(d)), taps[j]);
    }
    if constexpr (scale == 3) {
      even = hn::Add(even, hn::ShiftLeft<16>(hn::Load(d, rows[1] + 2 * i)));
      odd = hn::Add(odd, hn::ShiftLeft<16>(hn::Load(d, rows[1] + 2 * i + hn::Lanes(d))));
    }
    even = by.right(even);
    odd = by.right(odd);
    hn::Store(hn::Xor(lower_halves(d, even, odd), hn::Set(d, bias)), d, &down[i]);
  }
}

// `count` columns of a row of scale `scale`: even columns of such a row, filtered across.
template <int scale, bool is_fused>
void halve_across(const RowOfWords& down, std::size_t count, std::uint16_t* HWY_RESTRICT to) {
  const hn::ScalableTag<Word> d;
  using V = hn::Vec<decltype(d)>;
  constexpr std::size_t pairs = kVifPairs[scale];
  constexpr std::size_t first = (static_cast<std::size_t>(kVifMargin) - (pairs - 1)) / 2;
  constexpr Word whole = 0x80000000u;
  V taps[pairs];
  for (std::size_t j = 0; j < pairs; ++j) taps[j] = hn::Set(d, kVifTapPairs[scale].even[j]);
  alignas(64) RowOfWords outputs;
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    V even = hn::Set(d, whole + 0x8000u);
    for (std::size_t j = 0; j < pairs; ++j) {
      even = add_products<is_fused>(d, even, hn::LoadU(d, &down[i + first + j]), taps[j]);
    }
    if constexpr (scale == 3) {
      even = hn::Add(even, hn::ShiftLeft<16>(hn::LoadU(d, &down[i + first + 1])));
    }
    hn::Store(hn::ShiftRight<16>(even), d, &outputs[i]);
  }
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<std::uint16_t>(outputs[i]);
}

}  // namespace similis::vmaf_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SIMILIS_VMAF_VIF_HALVE_INL_H
