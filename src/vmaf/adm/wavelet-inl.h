// SPDX-License-Identifier: Apache-2.0
// The wavelet of ADM, row by row. Included once per SIMD target, hence the guard that flips.
//
// Filters multiply pairs of 16-bit halves of neighbouring rows or columns and add both products in
// 32 bits. Numbers of 32 bits are filtered as a signed lower half and what is left, an upper one.
#if defined(SIMILIS_VMAF_ADM_WAVELET_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_VMAF_ADM_WAVELET_INL_H
#undef SIMILIS_VMAF_ADM_WAVELET_INL_H
#else
#define SIMILIS_VMAF_ADM_WAVELET_INL_H
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "src/vmaf/adm/plan.h"
#include "src/vmaf/row_memory.h"
#include "src/vmaf/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::vmaf_internal::HWY_NAMESPACE {

using Coefficient = std::int32_t;

// A row in memory of others, with room for a vector to the left and for two vectors to the right.
template <class T> class PaddedRow {
 public:
  PaddedRow() = default;
  PaddedRow(std::int64_t width, RowMemory& memory)
      : values_(reinterpret_cast<T*>(
            memory.take(3 * kPaddingBytes + static_cast<std::size_t>(width) * sizeof(T)) +
            kPaddingBytes)) {}
  T* get() { return values_; }
  const T* get() const { return values_; }

 private:
  static constexpr std::size_t kPaddingBytes =
      std::max<std::size_t>(HWY_MAX_BYTES, RowMemory::kAlignment);
  T* values_ = nullptr;
};

// h, v and d of one row.
struct WaveletRow {
  WaveletRow(std::int64_t width, RowMemory& memory) {
    for (auto& band : bands) band = PaddedRow<Coefficient>(width, memory);
  }
  std::array<PaddedRow<Coefficient>, kAdmBands> bands;
};

using D = hn::ScalableTag<std::uint32_t>;
using V = hn::Vec<D>;
inline std::int64_t lanes_of_words() { return static_cast<std::int64_t>(hn::Lanes(D())); }

constexpr std::uint32_t tap_pair(std::int32_t first, std::int32_t second) {
  return (static_cast<std::uint32_t>(first) & 0xffff) | static_cast<std::uint32_t>(second) << 16;
}

// A row of words, each of two columns from the even one on. Word -1 has column -1, and two more
// than half the width follow.
using RowOfPairs = PaddedRow<std::uint32_t>;

// Four rows in turn serve a window, and two of them the next one too.
class RowsOfPairs {
 public:
  RowsOfPairs() = default;
  RowsOfPairs(std::int64_t words, RowMemory& memory) {
    for (Row& row : rows_) row.words = RowOfPairs(words, memory);
  }
  // load(index, words) fills a row that is not there.
  template <class Load> const std::uint32_t* row_at(std::int64_t index, Load load) {
    Row& row = rows_[static_cast<std::size_t>(index) % rows_.size()];
    if (row.index != index) {
      row.index = index;
      load(index, row.words.get());
    }
    return row.words.get();
  }

 private:
  struct Row {
    std::int64_t index = -1;  // none yet
    RowOfPairs words;
  };
  std::array<Row, 4> rows_;
};

// The words at both ends of a row, whose columns beyond it are others: column 1 is before the
// first. column(x): the 16 bits of a column inside.
template <class Column>
void load_ends(std::int64_t width, Column column, std::uint32_t* HWY_RESTRICT to) {
  const auto mirrored = [&](std::int64_t x) -> std::uint32_t {
    return column(x < width ? x : std::max<std::int64_t>(0, 2 * width - 1 - x)) & 0xffff;
  };
  to[-1] = mirrored(1) << 16;
  for (std::int64_t i = width / 2; i < (width + 1) / 2 + 1; ++i) {
    to[i] = mirrored(2 * i) | mirrored(2 * i + 1) << 16;
  }
}

// Pairs of four rows in even and odd columns, times the taps of one filter.
template <bool is_fused> struct PairsDown {
  V even01, odd01, even23, odd23;
  HWY_INLINE PairsDown(const std::array<const std::uint32_t*, 4>& rows, std::int64_t i) {
    const D d;
    const V a = hn::LoadU(d, rows[0] + i), b = hn::LoadU(d, rows[1] + i);
    const V c = hn::LoadU(d, rows[2] + i), e = hn::LoadU(d, rows[3] + i);
    even01 = lower_halves(d, a, b);
    odd01 = upper_halves(d, a, b);
    even23 = lower_halves(d, c, e);
    odd23 = upper_halves(d, c, e);
  }
  HWY_INLINE void sums(
      const std::array<std::int32_t, 4>& taps, std::uint32_t start, V& even, V& odd) const {
    const D d;
    const V taps01 = hn::Set(d, tap_pair(taps[0], taps[1]));
    const V taps23 = hn::Set(d, tap_pair(taps[2], taps[3]));
    const V first = hn::Set(d, start);
    const auto sum = [&](V pairs01, V pairs23) HWY_ATTR {
      return add_products<is_fused>(
          d, add_products<is_fused>(d, first, pairs01, taps01), pairs23, taps23);
    };
    even = sum(even01, even23);
    odd = sum(odd01, odd23);
  }
};

// Sums across: of the low and of the high filter at output i.
template <bool is_fused> struct SumsAcross {
  V low, high;
  HWY_INLINE SumsAcross(
      const std::uint32_t* HWY_RESTRICT row, std::int64_t i, std::uint32_t start) {
    const D d;
    const V before = loaded(hn::LoadU(d, row + i - 1)), here = loaded(hn::LoadU(d, row + i)),
            after = loaded(hn::LoadU(d, row + i + 1));
    const auto sum = [&](const std::array<std::int32_t, 4>& taps) HWY_ATTR {
      V result = hn::Set(d, start);
      result = add_products<is_fused>(d, result, before, hn::Set(d, tap_pair(0, taps[0])));
      result = add_products<is_fused>(d, result, here, hn::Set(d, tap_pair(taps[1], taps[2])));
      return add_products<is_fused>(d, result, after, hn::Set(d, tap_pair(taps[3], 0)));
    };
    low = sum(kAdmLow);
    high = sum(kAdmHigh);
  }
};

HWY_INLINE V shifted(V v, int shift) {
  const hn::RebindToSigned<D> di;
  return hn::BitCast(D(), hn::ShiftRightSame(hn::BitCast(di, v), shift));
}
HWY_INLINE void store(V v, std::int32_t* to) {
  const hn::RebindToSigned<D> di;
  hn::StoreU(hn::BitCast(di, v), di, to);
}
HWY_INLINE void store(V v, std::int16_t* to) {
  const hn::RebindToSigned<D> di;
  const hn::Rebind<std::int16_t, D> d16;
  hn::StoreU(hn::DemoteTo(d16, hn::BitCast(di, v)), d16, to);
}

// The wavelet of samples.
template <bool is_fused> class SampleWavelet {
 public:
  using Approximation = std::int16_t;
  SampleWavelet(const Plane& plane, RowMemory& memory)
      : plane_(plane),
        words_((plane.width + 1) / 2),
        rows_(words_, memory),
        low_(words_, memory),
        high_(words_, memory) {}

  // Row y. approximation: where it goes, with room for a vector more.
  void transform(std::int64_t y, bool has_bands, WaveletRow& to, Approximation* approximation) {
    std::array<const std::uint32_t*, 4> rows;
    for (int k = 0; k < 4; ++k) {
      const auto load = [&](std::int64_t index, std::uint32_t* words) {
        plane_.is_words ? load_row<std::uint16_t>(index, words)
                        : load_row<std::uint8_t>(index, words);
      };
      rows[static_cast<std::size_t>(k)] = rows_.row_at(adm_input(y, k, plane_.height), load);
    }
    down(rows);
    across(low_.get(), approximation, to.bands[1].get());
    if (has_bands) across(high_.get(), to.bands[0].get(), to.bands[2].get());
  }

 private:
  // Samples about the middle of the range.
  template <class Sample> void load_row(std::int64_t index, std::uint32_t* HWY_RESTRICT to) const {
    const Sample* HWY_RESTRICT from = plane_.row<Sample>(index);
    const std::uint32_t middle = 1u << (plane_.bit_depth - 1);
    std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
    const D d;
    const hn::Repartition<std::uint16_t, D> d16;
    const hn::Rebind<Sample, decltype(d16)> samples;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const auto middles = hn::Set(d16, static_cast<std::uint16_t>(middle));
    const Sample* ahead = plane_.row<Sample>(std::min(index + 2, plane_.height - 1));
    for (; 2 * (i + lanes) <= plane_.width; i += lanes) {
      hwy::Prefetch(ahead + 2 * i);
      hn::Vec<decltype(d16)> columns;
      if constexpr (sizeof(Sample) == 1) {
        columns = hn::PromoteTo(d16, hn::LoadU(samples, from + 2 * i));
      } else {
        columns = hn::LoadU(d16, from + 2 * i);
      }
      hn::StoreU(hn::BitCast(d, hn::Sub(columns, middles)), d, to + i);
    }
#endif
    for (; i < plane_.width / 2; ++i) {
      to[i] = ((from[2 * i] - middle) & 0xffff) | (from[2 * i + 1] - middle) << 16;
    }
    load_ends(
        plane_.width, [&](std::int64_t x) { return from[x] - middle; }, to);
  }

  void down(const std::array<const std::uint32_t*, 4>& rows) {
    const D d;
    const std::uint32_t half = std::uint32_t{1} << (plane_.bit_depth - 1);
    const VectorShift<hn::RebindToSigned<D>> by_depth(plane_.bit_depth);
    const auto shifted = [&](V v) HWY_ATTR {
      return hn::BitCast(d, by_depth.right(hn::BitCast(hn::RebindToSigned<D>(), v)));
    };
    for (std::int64_t i = -lanes_of_words(); i < words_ + 1; i += lanes_of_words()) {
      const PairsDown<is_fused> pairs(rows, i);
      V even, odd;
      pairs.sums(kAdmLow, half, even, odd);
      hn::StoreU(lower_halves(d, shifted(even), shifted(odd)), d, low_.get() + i);
      pairs.sums(kAdmHigh, half, even, odd);
      hn::StoreU(lower_halves(d, shifted(even), shifted(odd)), d, high_.get() + i);
    }
  }

  template <class Low>
  void across(
      const std::uint32_t* row, Low* HWY_RESTRICT low, Coefficient* HWY_RESTRICT high) const {
    for (std::int64_t i = 0; i < words_; i += static_cast<std::int64_t>(hn::Lanes(D()))) {
      const SumsAcross<is_fused> sums(row, i, 0x8000);
      store(shifted(sums.low, 16), low + i);
      store(shifted(sums.high, 16), high + i);
    }
  }

  const Plane& plane_;
  std::int64_t words_;
  RowsOfPairs rows_;
  RowOfPairs low_, high_;
};

// The wavelet of an approximation. That of scale 1 has 16 bits.
template <bool is_fused> class DeepWavelet {
 public:
  using Approximation = Coefficient;
  DeepWavelet(const AdmPlane& plane, int scale, RowMemory& memory)
      : plane_(plane),
        is_narrow_(scale == 1),
        across_shift_(kAdmShiftAcross[static_cast<std::size_t>(scale)]),
        words_((plane.width + 1) / 2) {
    for (RowsOfPairs* rows : {&lower_rows_, &upper_rows_}) *rows = RowsOfPairs(words_, memory);
    for (auto* halves : {&low_, &high_}) {
      for (RowOfPairs& row : *halves) row = RowOfPairs(words_, memory);
    }
  }

  // Row y. approximation: where it goes, with room for a vector more.
  void transform(std::int64_t y, bool has_bands, WaveletRow& to, Coefficient* approximation) {
    std::array<const std::uint32_t*, 4> lower, upper;
    for (int k = 0; k < 4; ++k) {
      const std::int64_t index = adm_input(y, k, plane_.height);
      const auto at = static_cast<std::size_t>(k);
      lower[at] = lower_rows_.row_at(index, [&](std::int64_t row, std::uint32_t* words) {
        if (is_narrow_) {
          load_narrow(plane_.row<std::int16_t>(row), words);
        } else {
          load_halves<false>(plane_.row<Coefficient>(row), words);
        }
      });
      if (is_narrow_) continue;
      upper[at] = upper_rows_.row_at(index, [&](std::int64_t row, std::uint32_t* words) {
        load_halves<true>(plane_.row<Coefficient>(row), words);
      });
    }
    if (is_narrow_) {
      down<true>(lower, lower);
    } else {
      down<false>(lower, upper);
    }
    across(low_, approximation, to.bands[1].get());
    if (has_bands) across(high_, to.bands[0].get(), to.bands[2].get());
  }

 private:
  using Halves = std::array<RowOfPairs, 2>;  // lower, upper

  // To an upper half belongs what a negative lower one takes away.
  static constexpr std::uint32_t kCarry = 0x8000;

  void load_narrow(const std::int16_t* HWY_RESTRICT from, std::uint32_t* HWY_RESTRICT to) const {
    std::memcpy(to, from, static_cast<std::size_t>(plane_.width) * sizeof(*from));
    load_ends(
        plane_.width, [&](std::int64_t x) { return static_cast<std::uint32_t>(from[x]); }, to);
  }

  template <bool is_upper>
  void load_halves(const Coefficient* HWY_RESTRICT from, std::uint32_t* HWY_RESTRICT to) const {
    const D d;
    const hn::RebindToSigned<D> di;
    for (std::int64_t i = 0; i < words_; i += static_cast<std::int64_t>(hn::Lanes(d))) {
      hn::Vec<decltype(di)> even, odd;
      hn::LoadInterleaved2(di, from + 2 * i, even, odd);
      const V a = hn::BitCast(d, even), b = hn::BitCast(d, odd), carry = hn::Set(d, kCarry);
      hn::StoreU(
          is_upper ? upper_halves(d, hn::Add(a, carry), hn::Add(b, carry)) : lower_halves(d, a, b),
          d, to + i);
    }
    load_ends(
        plane_.width,
        [&](std::int64_t x) {
          const auto value = static_cast<std::uint32_t>(from[x]);
          return is_upper ? (value + kCarry) >> 16 : value;
        },
        to);
  }

  // Sums of 16 bits are kept as they are, others are rounded to multiples of 2^16.
  template <bool is_narrow>
  void down(const std::array<const std::uint32_t*, 4>& lower,
      const std::array<const std::uint32_t*, 4>& upper) {
    const D d;
    const V carry = hn::Set(d, kCarry);
    for (std::int64_t i = -lanes_of_words(); i < words_ + 1; i += lanes_of_words()) {
      const PairsDown<is_fused> pairs(lower, i), upper_pairs(upper, i);
      const auto filter = [&](const std::array<std::int32_t, 4>& taps, Halves& to) HWY_ATTR {
        V even, odd;
        pairs.sums(taps, is_narrow ? 0 : 0x8000, even, odd);
        if constexpr (!is_narrow) {
          V upper_even, upper_odd;
          upper_pairs.sums(taps, 0, upper_even, upper_odd);
          even = hn::Add(upper_even, shifted(even, 16));
          odd = hn::Add(upper_odd, shifted(odd, 16));
        }
        hn::StoreU(lower_halves(d, even, odd), d, to[0].get() + i);
        hn::StoreU(upper_halves(d, hn::Add(even, carry), hn::Add(odd, carry)), d, to[1].get() + i);
      };
      filter(kAdmLow, low_);
      filter(kAdmHigh, high_);
    }
  }

  void across(
      const Halves& rows, Coefficient* HWY_RESTRICT low, Coefficient* HWY_RESTRICT high) const {
    const std::uint32_t half = std::uint32_t{1} << (across_shift_ - 1);
    const hn::RebindToSigned<D> di;
    const VectorShift<D> to_upper(16 - across_shift_);
    const VectorShift<hn::RebindToSigned<D>> across_shift(across_shift_);
    for (std::int64_t i = 0; i < words_; i += static_cast<std::int64_t>(hn::Lanes(D()))) {
      const SumsAcross<is_fused> lower(rows[0].get(), i, half), upper(rows[1].get(), i, 0);
      const auto joined = [&](V lower_sum, V upper_sum) HWY_ATTR {
        const V lower_part = hn::BitCast(D(), across_shift.right(hn::BitCast(di, lower_sum)));
        return hn::Add(lower_part, to_upper.left(upper_sum));
      };
      store(joined(lower.low, upper.low), low + i);
      store(joined(lower.high, upper.high), high + i);
    }
  }

  const AdmPlane& plane_;
  bool is_narrow_;
  int across_shift_;
  std::int64_t words_;
  RowsOfPairs lower_rows_, upper_rows_;
  Halves low_, high_;
};

}  // namespace similis::vmaf_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SIMILIS_VMAF_ADM_WAVELET_INL_H
