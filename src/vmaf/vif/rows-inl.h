// SPDX-License-Identifier: Apache-2.0
// Rows of a tile of VIF, and a step of its filters. Included once per SIMD target, hence the guard
// that flips.
//
// A vector of words holds two columns in each lane, the even one below. All steps but the loads of
// filters across stay within lanes, so they are the same for every vector length.
#if defined(SIMILIS_VMAF_VIF_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_VMAF_VIF_ROWS_INL_H
#undef SIMILIS_VMAF_VIF_ROWS_INL_H
#else
#define SIMILIS_VMAF_VIF_ROWS_INL_H
#endif

#include <algorithm>
#include <array>
#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "src/vmaf/vif/plan.h"
#include "src/vmaf/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::vmaf_internal::HWY_NAMESPACE {

using Word = std::uint32_t;

// A tile's columns and both margins, and space for a vector, in words.
constexpr std::size_t kTileWords = static_cast<std::size_t>(kVifTileColumns + 2 * kVifMargin) / 2;
constexpr std::size_t kRowWords = kTileWords + 32;
using RowOfWords = std::array<Word, kRowWords>;

// The index of a row or column that windows may see; those that only zero taps see are anything
// inside.
inline std::int64_t inside(std::int64_t index, std::int64_t extent) {
  return std::clamp<std::int64_t>(reflected(index, extent), 0, extent - 1);
}

// Columns first, first + 1, … of a row as words, two columns each. Those inside the row are read a
// vector at a time; the last vector overlaps the one before it.
template <class Sample>
void load_columns(const Sample* HWY_RESTRICT row, std::int64_t width, std::int64_t first,
    std::size_t words, Word* HWY_RESTRICT to) {
  const auto count = static_cast<std::int64_t>(2 * words);
  const auto column = [&](std::int64_t i) { return Word{row[inside(first + i, width)]}; };
  std::int64_t i = 0;
  for (; i < count && first + i < 0; i += 2) to[i / 2] = column(i) | column(i + 1) << 16;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<std::uint16_t> d;
  const hn::Repartition<Word, decltype(d)> d32;
  const hn::Rebind<Sample, decltype(d)> from;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t end = std::min(count, width - first) / 2 * 2;
  const std::int64_t last = i + lanes <= end ? end - lanes : i - 1;
  while (i <= last) {
    const auto samples = hn::LoadU(from, row + first + i);
    if constexpr (sizeof(Sample) == 1) {
      hn::StoreU(hn::BitCast(d32, hn::PromoteTo(d, samples)), d32, to + i / 2);
    } else {
      hn::StoreU(hn::BitCast(d32, samples), d32, to + i / 2);
    }
    const std::int64_t next = i + lanes;
    i = next < end ? std::min(next, last) : next;
  }
#endif
  for (; i < count; i += 2) to[i / 2] = column(i) | column(i + 1) << 16;
}

// Rows of a tile lie apart, so that the processor does not foresee the next one.
template <class Sample>
void prefetch_columns(const Sample* row, std::int64_t width, std::int64_t first) {
  constexpr std::int64_t line = 64 / sizeof(Sample);
  const std::int64_t last = std::min(first + kVifTileColumns + kVifMargin, width);
  for (std::int64_t x = std::max<std::int64_t>(0, first - kVifMargin); x < last; x += line) {
    hwy::Prefetch(row + x);
  }
}

// Adds pairs times taps to even and odd outputs.
template <bool is_fused, class D>
HWY_INLINE void filter_step(D d, hn::Vec<D> pairs, hn::Vec<D> even_taps, hn::Vec<D> odd_taps,
    hn::Vec<D>& even, hn::Vec<D>& odd) {
  pairs = loaded(pairs);
  even = add_products<is_fused>(d, even, pairs, even_taps);
  odd = add_products<is_fused>(d, odd, pairs, odd_taps);
}

// Adds what the central taps of scale 3 lack: the samples times 2^16.
template <class D>
HWY_INLINE void add_centre(D d, hn::Vec<D> pairs, hn::Vec<D>& even, hn::Vec<D>& odd) {
  even = hn::Add(even, hn::ShiftLeft<16>(pairs));
  odd = hn::Add(odd, hn::And(pairs, hn::Set(d, 0xffff0000u)));
}

}  // namespace similis::vmaf_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SIMILIS_VMAF_VIF_ROWS_INL_H
