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

// Rows first to last of the next scale: even rows and columns, filtered by its taps. A pair of rows
// is read once for all windows that see it.
template <class Sample, int scale>
void halve_rows_at(const Plane& from, std::int64_t first_row, std::int64_t last_row,
    std::uint16_t* HWY_RESTRICT to, std::int64_t to_stride) {
  const hn::ScalableTag<Word> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int pairs = kVifPairs[scale];
  constexpr std::size_t first = (static_cast<std::size_t>(kVifMargin) - (pairs - 1)) / 2;
  constexpr Word bias = 0x80008000u, whole = 0x80000000u;
  const auto& taps = kVifTapPairs[scale].even;
  const int shift = scale == 1 ? from.bit_depth : 16;
  alignas(64) RowOfWords down, outputs;
  alignas(64) std::array<std::array<Word, 2 * kRowWords>, kVifPairs[0]> ring;
  const std::int64_t width = from.width / 2;
  for (std::int64_t column = 0; column < width; column += kVifTileColumns / 2) {
    const auto load_pair = [&](std::int64_t at, int place) HWY_ATTR {
      alignas(64) RowOfWords upper, lower;
      for (RowOfWords* row : {&upper, &lower}) {
        load_columns(from.row<Sample>(inside(at, from.height)), from.width, 2 * column - kVifMargin,
            kTileWords, row->data());
        ++at;
      }
      for (std::size_t i = 0; i < kTileWords; i += hn::Lanes(d)) {
        store_pairs(d, hn::Xor(hn::Load(d, &upper[i]), hn::Set(d, bias)),
            hn::Xor(hn::Load(d, &lower[i]), hn::Set(d, bias)),
            &ring[static_cast<std::size_t>(place)][2 * i]);
      }
    };
    for (int j = 0; j + 1 < pairs; ++j) load_pair(2 * (first_row + j) - (pairs - 1), j);
    int newest = pairs - 1;
    for (std::int64_t row = first_row; row < last_row; ++row) {
      load_pair(2 * row + pairs - 1, newest);
      newest = (newest + 1) % pairs;  // now the oldest
      std::array<const Word*, kVifPairs[0]> window{};
      for (int j = 0; j < pairs; ++j) {
        window[static_cast<std::size_t>(j)] =
            ring[static_cast<std::size_t>((newest + j) % pairs)].data();
      }
      for (std::size_t i = 0; i < kTileWords; i += hn::Lanes(d)) {
        V even = hn::Set(d, whole + (Word{1} << (shift - 1))), odd = even;
        for (std::size_t j = 0; j < pairs; ++j) {
          const Word* words = window[j] + 2 * i;
          const V tap_pair = hn::Set(d, taps[j]);
          even = add_products(d, even, hn::Load(d, words), tap_pair);
          odd = add_products(d, odd, hn::Load(d, words + hn::Lanes(d)), tap_pair);
        }
        if constexpr (scale == 3) {
          even = hn::Add(even, hn::ShiftLeft<16>(hn::Load(d, window[1] + 2 * i)));
          odd = hn::Add(odd, hn::ShiftLeft<16>(hn::Load(d, window[1] + 2 * i + hn::Lanes(d))));
        }
        even = hn::ShiftRightSame(even, shift);
        odd = hn::ShiftRightSame(odd, shift);
        hn::Store(hn::Xor(lower_halves(d, even, odd), hn::Set(d, bias)), d, &down[i]);
      }
      const auto count =
          static_cast<std::size_t>(std::min<std::int64_t>(kVifTileColumns / 2, width - column));
      for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
        V even = hn::Set(d, whole + 0x8000u);
        for (std::size_t j = 0; j < pairs; ++j) {
          even = add_products(d, even, hn::LoadU(d, &down[i + first + j]), hn::Set(d, taps[j]));
        }
        if constexpr (scale == 3) {
          even = hn::Add(even, hn::ShiftLeft<16>(hn::LoadU(d, &down[i + first + 1])));
        }
        hn::Store(hn::ShiftRight<16>(even), d, &outputs[i]);
      }
      std::uint16_t* HWY_RESTRICT halved = to + row * to_stride + column;
      for (std::size_t i = 0; i < count; ++i) halved[i] = static_cast<std::uint16_t>(outputs[i]);
    }
  }
}

template <class Sample>
void halve_rows_of(const Plane& from, int scale, std::int64_t first, std::int64_t last,
    std::uint16_t* to, std::int64_t to_stride) {
  switch (scale) {
    case 1: return halve_rows_at<Sample, 1>(from, first, last, to, to_stride);
    case 2: return halve_rows_at<Sample, 2>(from, first, last, to, to_stride);
    default: return halve_rows_at<Sample, 3>(from, first, last, to, to_stride);
  }
}
}  // namespace similis::vmaf_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SIMILIS_VMAF_VIF_HALVE_INL_H
