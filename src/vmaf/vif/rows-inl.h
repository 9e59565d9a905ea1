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
#include <iterator>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "src/vmaf/vif/plan.h"
#include "src/vmaf/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::vmaf_internal::HWY_NAMESPACE {

using Word = std::uint32_t;

// Columns of a tile; its windows reach 16 further. The ring of its pairs is 46 KB for 8-bit samples
// and vectors of 8 lanes. With 16 lanes 240 columns would leave half of the last vector empty,
// and twice as large a ring is no slower, since four output rows share what is read of it.
constexpr std::int64_t kVifTileColumns = HWY_TARGET == HWY_AVX3 ? 480 : 240;

// A tile's columns and both margins in whole vectors, and space for a vector, in words.
constexpr std::size_t kTileWords =
    (static_cast<std::size_t>(kVifTileColumns + 2 * kVifMargin) / 2 + 31) / 32 * 32;
constexpr std::size_t kRowWords = kTileWords + 32;
using RowOfWords = std::array<Word, kRowWords>;

// The index of a row or column that windows may see; those that only zero taps see are anything
// inside.
inline std::int64_t inside(std::int64_t index, std::int64_t extent) {
  return std::clamp<std::int64_t>(reflected(index, extent), 0, extent - 1);
}

// A vector of words of a row, two columns each.
template <class Sample> HWY_INLINE hn::Vec<hn::ScalableTag<Word>> words_at(const Sample* row) {
  const hn::ScalableTag<Word> d32;
#if HWY_TARGET != HWY_SCALAR
  const hn::Repartition<std::uint16_t, decltype(d32)> d;
  const auto samples = hn::LoadU(hn::Rebind<Sample, decltype(d)>(), row);
  if constexpr (sizeof(Sample) == 1) {
    return hn::BitCast(d32, hn::PromoteTo(d, samples));
  } else {
    return hn::BitCast(d32, samples);
  }
#else
  return hn::Set(d32, Word{row[0]} | Word{row[1]} << 16);
#endif
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
  const hn::ScalableTag<Word> d32;
  const auto lanes = static_cast<std::int64_t>(2 * hn::Lanes(d32));
  const std::int64_t end = std::min(count, width - first) / 2 * 2;
  const std::int64_t last = i + lanes <= end ? end - lanes : i - 1;
  while (i <= last) {
    hn::StoreU(words_at(row + first + i), d32, to + i / 2);
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

// The pairs of taps of a filter. AVX-512 has registers for most of them; GCC 12 makes constants
// anew for each product there, unless it does not know them.
template <int scale> class VifTaps {
  using D = hn::ScalableTag<Word>;
  using V = hn::Vec<D>;
  static constexpr const VifTapPairs& kPairs = kVifTapPairs[scale];

 public:
#if HWY_TARGET == HWY_AVX3
  VifTaps() {
    for (std::size_t j = 0; j < std::size(even_); ++j) {
      even_[j] = loaded(hn::Set(D(), kPairs.even[j]));
      odd_[j] = loaded(hn::Set(D(), kPairs.odd[j]));
    }
  }
  HWY_INLINE V even(int j) const { return even_[j]; }
  HWY_INLINE V odd(int j) const { return odd_[j]; }

 private:
  V even_[kVifPairs[scale]], odd_[kVifPairs[scale]];
#else
  HWY_INLINE V even(int j) const { return hn::Set(D(), kPairs.even[static_cast<std::size_t>(j)]); }
  HWY_INLINE V odd(int j) const { return hn::Set(D(), kPairs.odd[static_cast<std::size_t>(j)]); }
#endif
};

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
