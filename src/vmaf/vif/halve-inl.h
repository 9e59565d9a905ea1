// SPDX-License-Identifier: Apache-2.0
// Rows of VIF's next scale, in vectors. Included once per SIMD target, hence the guard that flips.
#if defined(SIMILIS_VMAF_VIF_HALVE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_VMAF_VIF_HALVE_INL_H
#undef SIMILIS_VMAF_VIF_HALVE_INL_H
#else
#define SIMILIS_VMAF_VIF_HALVE_INL_H
#endif

#include <algorithm>
#include <array>
#include <cstdint>

#include "src/vmaf/vif/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::vmaf_internal::HWY_NAMESPACE {

// Row `row` of the next scale: even rows and columns, filtered by its taps.
template <class Sample, int scale>
void halve_row_at(const Plane& from, std::int64_t row, std::uint16_t* HWY_RESTRICT to) {
  const hn::ScalableTag<Word> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int pairs = kVifPairs[scale];
  constexpr std::size_t first = (static_cast<std::size_t>(kVifMargin) - (pairs - 1)) / 2;
  constexpr Word bias = 0x80008000u, whole = 0x80000000u;
  const TapPairs taps = tap_pairs(scale);
  const int shift = scale == 1 ? from.bit_depth : 16;
  alignas(64) RowOfWords down;
  alignas(64) std::array<RowOfWords, 2 * kVifPairs[0]> rows;
  alignas(64) RowOfWords outputs;
  const std::int64_t width = from.width / 2;
  for (std::int64_t column = 0; column < width; column += kVifTileColumns / 2) {
    for (int k = 0; k < 2 * pairs; ++k) {
      const std::int64_t at = inside(2 * row - (pairs - 1) + k, from.height);
      load_columns(from.row<Sample>(at), from.width, 2 * column - kVifMargin, kTileWords,
          rows[static_cast<std::size_t>(k)].data());
    }
    for (std::size_t i = 0; i < kTileWords; i += hn::Lanes(d)) {
      V even = hn::Set(d, whole + (Word{1} << (shift - 1))), odd = even;
      for (int j = 0; j < pairs; ++j) {
        const auto k = static_cast<std::size_t>(2 * j);
        const V upper = hn::Xor(hn::Load(d, &rows[k][i]), hn::Set(d, bias));
        const V lower = hn::Xor(hn::Load(d, &rows[k + 1][i]), hn::Set(d, bias));
        V unused = hn::Zero(d);
        filter_step<scale>(d, lower_halves(d, upper, lower), j, taps, even, unused);
        filter_step<scale>(d, upper_halves(d, upper, lower), j, taps, odd, unused);
      }
      even = hn::ShiftRightSame(even, shift);
      odd = hn::ShiftRightSame(odd, shift);
      hn::Store(hn::Xor(lower_halves(d, even, odd), hn::Set(d, bias)), d, &down[i]);
    }
    const auto count =
        static_cast<std::size_t>(std::min<std::int64_t>(kVifTileColumns / 2, width - column));
    for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
      V even = hn::Set(d, whole + 0x8000u), unused = even;
      for (int j = 0; j < pairs; ++j) {
        filter_step<scale>(
            d, hn::LoadU(d, &down[i + first + static_cast<std::size_t>(j)]), j, taps, even, unused);
      }
      hn::Store(hn::ShiftRight<16>(even), d, &outputs[i]);
    }
    for (std::size_t i = 0; i < count; ++i) {
      to[column + static_cast<std::int64_t>(i)] = static_cast<std::uint16_t>(outputs[i]);
    }
  }
}

template <class Sample>
void halve_row(const Plane& from, int scale, std::int64_t row, std::uint16_t* to) {
  switch (scale) {
    case 1: return halve_row_at<Sample, 1>(from, row, to);
    case 2: return halve_row_at<Sample, 2>(from, row, to);
    default: return halve_row_at<Sample, 3>(from, row, to);
  }
}
}  // namespace similis::vmaf_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SIMILIS_VMAF_VIF_HALVE_INL_H
