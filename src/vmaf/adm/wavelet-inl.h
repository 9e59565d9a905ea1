// SPDX-License-Identifier: Apache-2.0
// The wavelet of ADM, row by row. Included once per SIMD target, hence the guard that flips.
//
// That of samples multiplies pairs of 16-bit halves; deeper ones are sums of products below 2^53 in
// doubles, hence exact.
#if defined(SIMILIS_VMAF_ADM_WAVELET_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_VMAF_ADM_WAVELET_INL_H
#undef SIMILIS_VMAF_ADM_WAVELET_INL_H
#else
#define SIMILIS_VMAF_ADM_WAVELET_INL_H
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "hwy/highway.h"
#include "src/vmaf/adm/plan.h"
#include "src/vmaf/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::vmaf_internal::HWY_NAMESPACE {

using Coefficient = std::int32_t;

// A row with room for an index of -1 to the left and for two vectors to the right.
template <class T> class PaddedRow {
 public:
  explicit PaddedRow(std::int64_t width = 0)
      : values_(static_cast<std::size_t>(width) + 2 * kPadding) {}
  T* get() { return values_.data() + kPadding; }
  const T* get() const { return values_.data() + kPadding; }

 private:
  static constexpr std::size_t kPadding = 2 * HWY_MAX_BYTES / sizeof(T);
  std::vector<T> values_;
};

// h, v and d of one row.
struct WaveletRow {
  explicit WaveletRow(std::int64_t width)
      : bands{PaddedRow<Coefficient>(width), PaddedRow<Coefficient>(width),
            PaddedRow<Coefficient>(width)} {}
  std::array<PaddedRow<Coefficient>, kAdmBands> bands;
};

// The wavelet of samples: pairs of rows and columns in halves of words.
class SampleWavelet {
  using D = hn::ScalableTag<std::uint32_t>;
  using V = hn::Vec<D>;

 public:
  explicit SampleWavelet(const Plane& plane)
      : plane_(plane), words_((plane.width + 1) / 2), low_(words_), high_(words_) {
    for (Row& row : rows_) row.words = PaddedRow<std::uint32_t>(words_);
  }

  // Row y. approximation: where it goes, with room for a vector more.
  void transform(std::int64_t y, bool has_bands, WaveletRow& to, Coefficient* approximation) {
    std::array<const std::uint32_t*, 4> rows;
    for (std::size_t k = 0; k < rows.size(); ++k) {
      rows[k] = row_at(adm_input(y, static_cast<int>(k), plane_.height));
    }
    down(rows);
    across(low_.get(), kAdmLow, approximation);
    if (!has_bands) return;
    across(high_.get(), kAdmLow, to.bands[0].get());
    across(low_.get(), kAdmHigh, to.bands[1].get());
    across(high_.get(), kAdmHigh, to.bands[2].get());
  }

 private:
  static constexpr std::uint32_t pair_of(std::int32_t first, std::int32_t second) {
    return (static_cast<std::uint32_t>(first) & 0xffff) | static_cast<std::uint32_t>(second) << 16;
  }

  // A row of the plane about the middle of the range, two columns a word; -1 if none is loaded yet.
  struct Row {
    std::int64_t index = -1;
    PaddedRow<std::uint32_t> words;
  };

  // Four rows in turn serve a window, and two of them the next one too.
  const std::uint32_t* row_at(std::int64_t index) {
    Row& row = rows_[static_cast<std::size_t>(index) % rows_.size()];
    if (row.index != index) {
      row.index = index;
      if (plane_.is_words) {
        load<std::uint16_t>(index, row.words.get());
      } else {
        load<std::uint8_t>(index, row.words.get());
      }
    }
    return row.words.get();
  }

  // Columns -2 to the width + 1 and beyond.
  template <class Sample> void load(std::int64_t index, std::uint32_t* HWY_RESTRICT to) {
    const Sample* HWY_RESTRICT from = plane_.row<Sample>(index);
    const std::int64_t width = plane_.width;
    const std::uint32_t middle = 1u << (plane_.bit_depth - 1);
    const auto word = [&](std::uint32_t lower, std::uint32_t upper) {
      return ((lower - middle) & 0xffff) | (upper - middle) << 16;
    };
    for (std::int64_t i = 0; i < width / 2; ++i) to[i] = word(from[2 * i], from[2 * i + 1]);
    const auto column = [&](std::int64_t x) -> std::uint32_t {
      return from[x < width ? x : std::max<std::int64_t>(0, 2 * width - 1 - x)];
    };
    to[-1] = word(middle, from[1]);
    for (std::int64_t i = width / 2; i < words_ + 1; ++i) {
      to[i] = word(column(2 * i), column(2 * i + 1));
    }
  }

  void down(const std::array<const std::uint32_t*, 4>& rows) {
    const D d;
    const hn::RebindToSigned<D> di;
    const int shift = plane_.bit_depth;
    const V half = hn::Set(d, std::uint32_t{1} << (shift - 1));
    const V low01 = hn::Set(d, pair_of(kAdmLow[0], kAdmLow[1]));
    const V low23 = hn::Set(d, pair_of(kAdmLow[2], kAdmLow[3]));
    const V high01 = hn::Set(d, pair_of(kAdmHigh[0], kAdmHigh[1]));
    const V high23 = hn::Set(d, pair_of(kAdmHigh[2], kAdmHigh[3]));
    const auto rounded = [&](V pairs01, V pairs23, V taps01, V taps23) HWY_ATTR {
      const V sum = add_products(d, add_products(d, half, pairs01, taps01), pairs23, taps23);
      return hn::BitCast(d, hn::ShiftRightSame(hn::BitCast(di, sum), shift));
    };
    const auto [r0, r1, r2, r3] = rows;
    for (std::int64_t i = -1; i < words_ + 1; i += static_cast<std::int64_t>(hn::Lanes(d))) {
      const V a = hn::LoadU(d, r0 + i), b = hn::LoadU(d, r1 + i);
      const V c = hn::LoadU(d, r2 + i), e = hn::LoadU(d, r3 + i);
      const V even01 = lower_halves(d, a, b), odd01 = upper_halves(d, a, b);
      const V even23 = lower_halves(d, c, e), odd23 = upper_halves(d, c, e);
      hn::StoreU(lower_halves(
                     d, rounded(even01, even23, low01, low23), rounded(odd01, odd23, low01, low23)),
          d, low_.get() + i);
      hn::StoreU(lower_halves(d, rounded(even01, even23, high01, high23),
                     rounded(odd01, odd23, high01, high23)),
          d, high_.get() + i);
    }
  }

  void across(const std::uint32_t* row, const std::array<std::int32_t, 4>& taps,
      Coefficient* HWY_RESTRICT to) const {
    const D d;
    const hn::RebindToSigned<D> di;
    const V first = hn::Set(d, pair_of(0, taps[0])), middle = hn::Set(d, pair_of(taps[1], taps[2]));
    const V last = hn::Set(d, pair_of(taps[3], 0)), half = hn::Set(d, 0x8000u);
    for (std::int64_t i = 0; i < words_; i += static_cast<std::int64_t>(hn::Lanes(d))) {
      V sum = add_products(d, half, hn::LoadU(d, row + i - 1), first);
      sum = add_products(d, sum, hn::LoadU(d, row + i), middle);
      sum = add_products(d, sum, hn::LoadU(d, row + i + 1), last);
      hn::StoreU(hn::ShiftRight<16>(hn::BitCast(di, sum)), di, to + i);
    }
  }

  const Plane& plane_;
  std::int64_t words_;
  std::array<Row, 4> rows_;
  PaddedRow<std::uint32_t> low_, high_;
};

// The wavelet of an approximation.
class DeepWavelet {
 public:
  DeepWavelet(const AdmPlane& plane, int scale)
      : plane_(plane),
        down_(std::ldexp(1.0, -kAdmShiftDown[static_cast<std::size_t>(scale)])),
        across_(std::ldexp(1.0, -kAdmShiftAcross[static_cast<std::size_t>(scale)])),
        low_(plane.width),
        high_(plane.width) {}

  // Row y. approximation: where it goes, with room for a vector more.
  void transform(std::int64_t y, bool has_bands, WaveletRow& to, Coefficient* approximation) {
    down(y);
    across(low_.get(), kAdmLow, approximation);
    if (!has_bands) return;
    across(high_.get(), kAdmLow, to.bands[0].get());
    across(low_.get(), kAdmHigh, to.bands[1].get());
    across(high_.get(), kAdmHigh, to.bands[2].get());
  }

 private:
  // Shifts of 0 bits keep the sum, whose half is then cut off.
  void down(std::int64_t y) {
    const Coefficient* HWY_RESTRICT rows[4];
    for (int k = 0; k < 4; ++k) rows[k] = plane_.row(adm_input(y, k, plane_.height));
    double* HWY_RESTRICT low = low_.get();
    double* HWY_RESTRICT high = high_.get();
    const double scale = down_;
    for (std::int64_t x = 0; x < plane_.width; ++x) {
      const double a = rows[0][x], b = rows[1][x], c = rows[2][x], d = rows[3][x];
      low[x] = std::floor(
          (kAdmLow[0] * a + kAdmLow[1] * b + kAdmLow[2] * c + kAdmLow[3] * d) * scale + 0.5);
      high[x] = std::floor(
          (kAdmHigh[0] * a + kAdmHigh[1] * b + kAdmHigh[2] * c + kAdmHigh[3] * d) * scale + 0.5);
    }
    for (double* row : {low, high}) {
      const std::int64_t width = plane_.width;
      row[-1] = row[1];
      row[width] = row[width - 1];
      row[width + 1] = row[std::max<std::int64_t>(0, width - 2)];
    }
  }

  void across(const double* HWY_RESTRICT row, const std::array<std::int32_t, 4>& taps,
      Coefficient* HWY_RESTRICT to) const {
    const hn::ScalableTag<double> d;
    const hn::Rebind<Coefficient, decltype(d)> di;
    const auto t0 = hn::Set(d, taps[0]), t1 = hn::Set(d, taps[1]), t2 = hn::Set(d, taps[2]),
               t3 = hn::Set(d, taps[3]), scale = hn::Set(d, across_), half = hn::Set(d, 0.5);
    const std::int64_t width = (plane_.width + 1) / 2;
    for (std::int64_t i = 0; i < width; i += static_cast<std::int64_t>(hn::Lanes(d))) {
      hn::Vec<decltype(d)> a, b, c, e;
      hn::LoadInterleaved2(d, row + 2 * i - 1, a, b);
      hn::LoadInterleaved2(d, row + 2 * i + 1, c, e);
      const auto sum =
          hn::Add(hn::Add(hn::Mul(a, t0), hn::Mul(b, t1)), hn::Add(hn::Mul(c, t2), hn::Mul(e, t3)));
      const auto rounded = hn::Floor(hn::Add(hn::Mul(sum, scale), half));
      hn::StoreU(hn::DemoteTo(di, rounded), di, to + i);
    }
  }

  const AdmPlane& plane_;
  double down_, across_;
  PaddedRow<double> low_, high_;
};

}  // namespace similis::vmaf_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SIMILIS_VMAF_ADM_WAVELET_INL_H
