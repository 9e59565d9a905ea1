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

// Approximation, h, v and d of one row.
struct WaveletRow {
  explicit WaveletRow(std::int64_t width)
      : approximation(width),
        bands{PaddedRow<Coefficient>(width), PaddedRow<Coefficient>(width),
            PaddedRow<Coefficient>(width)} {}
  PaddedRow<Coefficient> approximation;
  std::array<PaddedRow<Coefficient>, kAdmBands> bands;
};

// The wavelet of samples: pairs of rows and columns in halves of words.
class SampleWavelet {
  using D = hn::ScalableTag<std::uint32_t>;
  using V = hn::Vec<D>;

 public:
  explicit SampleWavelet(const Plane& plane)
      : plane_(plane), words_((plane.width + 1) / 2), low_(words_), high_(words_) {
    for (auto& row : rows_) row = PaddedRow<std::uint32_t>(words_);
  }

  void transform(std::int64_t y, WaveletRow& to) {
    for (int k = 0; k < 4; ++k)
      load(adm_input(y, k, plane_.height), rows_[static_cast<std::size_t>(k)]);
    down();
    across(low_.get(), kAdmLow, to.approximation.get());
    across(high_.get(), kAdmLow, to.bands[0].get());
    across(low_.get(), kAdmHigh, to.bands[1].get());
    across(high_.get(), kAdmHigh, to.bands[2].get());
  }

 private:
  static constexpr std::uint32_t pair_of(std::int32_t first, std::int32_t second) {
    return (static_cast<std::uint32_t>(first) & 0xffff) | static_cast<std::uint32_t>(second) << 16;
  }

  // Columns -2 to the width + 1 and beyond, about the middle of the range, two a word.
  template <class Sample> void load_samples(std::int64_t row, PaddedRow<std::uint32_t>& to) {
    const Sample* HWY_RESTRICT from = plane_.row<Sample>(row);
    const std::int64_t width = plane_.width;
    const int middle = 1 << (plane_.bit_depth - 1);
    samples_.resize(static_cast<std::size_t>(2 * words_ + 4));
    std::int16_t* HWY_RESTRICT samples = samples_.data() + 2;
    for (std::int64_t x = 0; x < width; ++x) {
      samples[x] = static_cast<std::int16_t>(from[x] - middle);
    }
    samples[-2] = 0;
    samples[-1] = samples[1];
    for (std::int64_t x = width; x < 2 * words_ + 2; ++x) {
      samples[x] = samples[std::max<std::int64_t>(0, 2 * width - 1 - x)];
    }
    std::memcpy(to.get() - 1, samples_.data(), samples_.size() * sizeof(std::int16_t));
  }
  void load(std::int64_t row, PaddedRow<std::uint32_t>& to) {
    if (plane_.is_words) {
      load_samples<std::uint16_t>(row, to);
    } else {
      load_samples<std::uint8_t>(row, to);
    }
  }

  void down() {
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
    const std::uint32_t *r0 = rows_[0].get(), *r1 = rows_[1].get(), *r2 = rows_[2].get(),
                        *r3 = rows_[3].get();
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
  std::array<PaddedRow<std::uint32_t>, 4> rows_;
  PaddedRow<std::uint32_t> low_, high_;
  std::vector<std::int16_t> samples_;
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

  void transform(std::int64_t y, WaveletRow& to) {
    down(y);
    across(low_.get(), kAdmLow, to.approximation.get());
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
