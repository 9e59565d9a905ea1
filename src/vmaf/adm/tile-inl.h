// SPDX-License-Identifier: Apache-2.0
// The passes of ADM over rows; adm/cpu.cc says how they follow one another. Included once per SIMD
// target, hence the guard that flips. They are plain loops over integers, or over doubles that hold
// integers, which the compiler makes vectors of.
#if defined(SIMILIS_VMAF_ADM_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_VMAF_ADM_TILE_INL_H
#undef SIMILIS_VMAF_ADM_TILE_INL_H
#else
#define SIMILIS_VMAF_ADM_TILE_INL_H
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "hwy/highway.h"
#include "src/vmaf/adm/plan.h"
#include "src/vmaf/adm/wavelet-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::vmaf_internal::HWY_NAMESPACE {

// Columns first to last of a row.
struct Span {
  std::int64_t first, last;
};

inline double as_float(double value) { return static_cast<double>(static_cast<float>(value)); }

// 1 where both images' gradients point alike.
template <bool is_deep>
void find_near(
    const WaveletRow& o, const WaveletRow& t, Span span, Coefficient* HWY_RESTRICT near) {
  const Coefficient* HWY_RESTRICT oh = o.bands[0].get();
  const Coefficient* HWY_RESTRICT ov = o.bands[1].get();
  const Coefficient* HWY_RESTRICT th = t.bands[0].get();
  const Coefficient* HWY_RESTRICT tv = t.bands[1].get();
  using Product = std::conditional_t<is_deep, std::int64_t, std::int32_t>;
  for (std::int64_t x = span.first; x < span.last; ++x) {
    const Product a = oh[x], b = ov[x], c = th[x], d = tv[x];
    const double product = static_cast<double>(static_cast<float>(a * c + b * d));
    const double original = static_cast<double>(static_cast<float>(a * a + b * b));
    const double distorted = static_cast<double>(static_cast<float>(c * c + d * d));
    const bool is_near = (product >= 0) & (product * product >= kAdmCosine * original * distorted);
    near[x] = is_near ? 1 : 0;
  }
}

// The part that is left of the reference's coefficients, without gain.
template <bool is_deep>
void restore(const Coefficient* HWY_RESTRICT o, const Coefficient* HWY_RESTRICT t, Span span,
    Coefficient* HWY_RESTRICT restored) {
  for (std::int64_t x = span.first; x < span.last; ++x) {
    const double of_o = o[x], of_t = t[x];
    const double size = std::abs(of_o);
    double divisor = size, unit = 0x1p-15;
    if constexpr (is_deep) {
      // Fifteen leading bits, rounded: sizes of 2^15 and more lose `excess` bits.
      const auto exponent = static_cast<std::int64_t>(bits_of(size) >> 52) - 1023;
      const std::int64_t excess = exponent > 14 ? exponent - 14 : 0;
      const double shrink = double_of(static_cast<std::uint64_t>(1023 - excess) << 52);
      divisor = std::floor(size * shrink + (excess > 0 ? 0.5 : 0.0));
      unit *= shrink;
    }
    const double inverse = std::floor(0x1p30 / divisor);
    const double signed_t = of_o < 0 ? -of_t : of_t;
    double k = std::floor(inverse * signed_t * unit + 0.5);
    k = k > 0 ? k : 0;
    k = k < 32768 ? k : 32768;
    const double r = std::floor(k * of_o * 0x1p-15 + 0.5);
    restored[x] = static_cast<Coefficient>(size == 0 ? 0 : r);
  }
}

// Applies the gain limit, and finds what the distorted image adds.
template <bool is_deep>
void split(const Coefficient* HWY_RESTRICT restored, const Coefficient* HWY_RESTRICT t,
    const Coefficient* HWY_RESTRICT near, double gain_limit, Span span,
    Coefficient* HWY_RESTRICT detail, Coefficient* HWY_RESTRICT added) {
  for (std::int64_t x = span.first; x < span.last; ++x) {
    const double r = restored[x], of_t = t[x];
    const double gained = r * gain_limit;
    const double limited =
        r > 0 ? (gained < of_t ? gained : of_t) : (gained > of_t ? gained : of_t);
    const double result = ((near[x] != 0) & (r != 0)) ? std::trunc(limited) : r;
    const auto whole = static_cast<Coefficient>(result);
    detail[x] = whole;
    added[x] =
        is_deep ? t[x] - whole : static_cast<Coefficient>(static_cast<std::int16_t>(t[x] - whole));
  }
}

// Adds a masker's weights: at its neighbours, and at its place beyond that.
void add_sample_weights(const Coefficient* HWY_RESTRICT m, std::int64_t factor, int band, Span span,
    Coefficient* HWY_RESTRICT neighbour, Coefficient* HWY_RESTRICT place) {
  const auto upper = static_cast<std::int32_t>(factor >> 8);
  const auto lower = static_cast<std::int32_t>(factor & 255);
  const std::int32_t rounding = band == 2 ? 65535 : 16384;
  const int shift = band == 2 ? 9 : 7;
  for (std::int64_t x = span.first; x < span.last; ++x) {
    const std::int32_t product = (upper * m[x] + ((lower * m[x] + rounding) >> 8)) >> shift;
    const std::int32_t c = std::abs(static_cast<std::int32_t>(static_cast<std::int16_t>(product)));
    const std::int32_t f = (4369 * c + 2048) >> 12, e = (8738 * c + 2048) >> 12;
    neighbour[x] += f;
    place[x] += e - f;
  }
}
void add_deep_weights(const Coefficient* HWY_RESTRICT m, std::int64_t factor, Span span,
    Coefficient* HWY_RESTRICT neighbour, Coefficient* HWY_RESTRICT place) {
  const auto narrow = static_cast<std::int32_t>(factor);
  for (std::int64_t x = span.first; x < span.last; ++x) {
    const std::int64_t product = std::int64_t{narrow} * m[x];
    const auto rounded = static_cast<std::int32_t>((product + (std::int64_t{1} << 27)) >> 28);
    const auto c = static_cast<std::uint32_t>(std::abs(rounded));
    constexpr std::uint64_t half = std::uint64_t{1} << 31;
    const auto f = static_cast<std::int32_t>((std::uint64_t{143165577} * c + half) >> 32) - 1;
    const auto e = static_cast<std::int32_t>((std::uint64_t{286331153} * c + half) >> 32) - 1;
    neighbour[x] += f;
    place[x] += e - f;
  }
}

// Σ z³ of a row, with its roundings.
template <bool is_deep>
std::uint64_t masked_cubes(const Coefficient* HWY_RESTRICT values,
    const Coefficient* HWY_RESTRICT thresholds, std::int64_t factor, int unit,
    const AdmShifts& shifts, Span span) {
  const auto narrow = static_cast<std::int32_t>(factor);
  const std::uint64_t cube_half = std::uint64_t{1} << (shifts.cube - 1);
  const std::uint64_t column_half = std::uint64_t{1} << (shifts.column - 1);
  const int cube = shifts.cube, column = shifts.column;
  std::uint64_t sum = 0;
  for (std::int64_t x = span.first; x < span.last; ++x) {
    std::uint32_t z;
    if constexpr (is_deep) {
      const std::int64_t product = std::int64_t{narrow} * values[x];
      const auto size =
          std::abs(static_cast<std::int32_t>((product + (std::int64_t{1} << 27)) >> 28));
      const std::int32_t over = size - thresholds[x];
      z = static_cast<std::uint32_t>(over > 0 ? over : 0);
    } else {
      const std::uint32_t size =
          static_cast<std::uint32_t>(narrow) * static_cast<std::uint32_t>(std::abs(values[x]));
      const std::uint32_t threshold = static_cast<std::uint32_t>(thresholds[x]) << unit;
      z = size > threshold ? size - threshold : 0;
    }
    const auto square = static_cast<std::uint32_t>((std::uint64_t{z} * z + cube_half) >> cube);
    sum += (std::uint64_t{square} * z + column_half) >> column;
  }
  return sum;
}

// Σ |o|³ of a row, with its roundings.
template <bool is_deep>
std::uint64_t cubes(const Coefficient* HWY_RESTRICT o, const AdmShifts& shifts, Span span) {
  std::uint64_t sum = 0;
  const std::uint64_t unit = std::uint64_t{1} << shifts.cube;
  const std::uint64_t half = shifts.column > 0 ? std::uint64_t{1} << (shifts.column - 1) : 0;
  const int cube = shifts.cube, column = shifts.column;
  for (std::int64_t x = span.first; x < span.last; ++x) {
    const auto size = static_cast<std::uint32_t>(std::abs(o[x]));
    if constexpr (is_deep) {
      const auto square = static_cast<std::uint32_t>((std::uint64_t{size} * size + unit) >> cube);
      sum += (std::uint64_t{square} * size + half) >> column;
    } else {
      sum += std::uint64_t{size * size} * size;
    }
  }
  return sum;
}

// A row of one setting after the split, and its maskers' weights.
struct MaskedRow {
  explicit MaskedRow(std::int64_t width) {
    for (auto& row : values) {
      for (auto& band : row) band = PaddedRow<Coefficient>(width);
    }
    for (auto* rows : {&neighbour, &place}) {
      for (auto& row : *rows) row = PaddedRow<Coefficient>(width);
    }
  }
  // First of the detail, then of what is added; its masker is the other.
  std::array<std::array<PaddedRow<Coefficient>, kAdmBands>, 2> values;
  std::array<PaddedRow<Coefficient>, 2> neighbour, place;
};

template <bool is_deep> class AdmStripe {
  using Wavelet = std::conditional_t<is_deep, DeepWavelet, SampleWavelet>;

 public:
  /// wavelets: of the reference, then of each distorted image.
  AdmStripe(const AdmPlan& plan, std::vector<Wavelet> wavelets)
      : plan_(plan),
        wavelets_(std::move(wavelets)),
        o_(plan.width),
        t_(plan.width),
        near_(plan.width),
        restored_(plan.width),
        thresholds_(plan.width),
        counted_{plan.left, plan.width - plan.left},
        seen_{std::max<std::int64_t>(0, counted_.first - 1),
            std::min(plan.width, counted_.last + 1)} {
    for (std::size_t i = 1; i < wavelets_.size(); ++i) {
      rings_.emplace_back(
          plan.sensitivities.size(), std::vector<MaskedRow>(3, MaskedRow(plan.width)));
    }
  }

  /// sums: of each distorted image.
  void run(std::int64_t stripe, std::span<AdmScaleSums> sums) {
    const std::int64_t begin = stripe * kAdmStripeRows;
    const std::int64_t end = std::min(begin + kAdmStripeRows, plan_.height);
    const std::int64_t first = std::max(begin, plan_.top);
    const std::int64_t last = plan_.is_measured ? std::min(end, plan_.height - plan_.top) : first;
    const bool is_counted = first < last;
    const std::int64_t seen_first = std::max<std::int64_t>(0, first - 1);
    const std::int64_t seen_last = std::min(plan_.height, last + 1);
    const std::int64_t from = is_counted ? std::min(begin, seen_first) : begin;
    const std::int64_t to = is_counted ? std::max(end, seen_last) : end;
    for (std::int64_t y = from; y < to; ++y) {
      const bool is_kept = y >= begin && y < end;
      wavelets_[0].transform(y, o_);
      if (is_kept) keep_approximation(0, o_, y);
      if (y >= first && y < last) add_reference(sums[0]);
      for (std::size_t i = 0; i < sums.size(); ++i) {
        wavelets_[i + 1].transform(y, t_);
        if (is_kept) keep_approximation(i + 1, t_, y);
        if (!is_counted || y < seen_first || y >= seen_last) continue;
        prepare(rings_[i], y);
        if (y > first) add_masked(rings_[i], y - 1, sums[i]);
        if (y == last - 1 && last == plan_.height) add_masked(rings_[i], y, sums[i]);
      }
    }
    for (AdmScaleSums& of_image : sums) of_image.reference = sums[0].reference;
  }

 private:
  using Ring = std::vector<MaskedRow>;  // three rows of one setting

  void keep_approximation(std::size_t image, const WaveletRow& row, std::int64_t y) const {
    if (plan_.approximations.empty()) return;
    std::memcpy(plan_.approximations[image] + y * plan_.width, row.approximation.get(),
        static_cast<std::size_t>(plan_.width) * sizeof(Coefficient));
  }

  void add_reference(AdmScaleSums& sums) const {
    for (std::size_t band = 0; band < kAdmBands; ++band) {
      const auto sum = static_cast<std::int64_t>(
          cubes<is_deep>(o_.bands[band].get(), plan_.reference_shifts, counted_));
      sums.reference[band] += rounded_shift(sum, plan_.reference_shifts.row);
    }
  }

  // Splits row y and weighs its maskers, for each setting.
  void prepare(std::vector<Ring>& rings, std::int64_t y) {
    find_near<is_deep>(o_, t_, seen_, near_.get());
    for (std::size_t band = 0; band < kAdmBands; ++band) {
      const Coefficient* t = t_.bands[band].get();
      restore<is_deep>(o_.bands[band].get(), t, seen_, restored_.get());
      for (std::size_t i = 0; i < rings.size(); ++i) {
        MaskedRow& row = row_of(rings[i], y);
        split<is_deep>(restored_.get(), t, near_.get(), plan_.settings[i].gain_limit, seen_,
            row.values[0][band].get(), row.values[1][band].get());
      }
    }
    for (std::size_t i = 0; i < rings.size(); ++i) weigh(row_of(rings[i], y), factors_of(i));
  }

  void weigh(MaskedRow& row, const std::array<std::int64_t, kAdmBands>& factors) const {
    for (std::size_t kind = 0; kind < 2; ++kind) {
      Coefficient *neighbour = row.neighbour[kind].get(), *place = row.place[kind].get();
      std::fill(neighbour + seen_.first, neighbour + seen_.last, 0);
      std::fill(place + seen_.first, place + seen_.last, 0);
      for (std::size_t band = 0; band < kAdmBands; ++band) {
        const Coefficient* masker = row.values[1 - kind][band].get();
        if constexpr (is_deep) {
          add_deep_weights(masker, factors[band], seen_, neighbour, place);
        } else {
          add_sample_weights(
              masker, factors[band], static_cast<int>(band), seen_, neighbour, place);
        }
      }
      if (seen_.first == 0) neighbour[-1] = neighbour[1];
      if (seen_.last == plan_.width) neighbour[plan_.width] = neighbour[plan_.width - 1];
    }
  }

  void add_masked(std::vector<Ring>& rings, std::int64_t y, AdmScaleSums& sums) {
    for (std::size_t i = 0; i < rings.size(); ++i) {
      const MaskedRow& above = row_of(rings[i], adm_neighbour(y - 1, plan_.height));
      const MaskedRow& row = row_of(rings[i], y);
      const MaskedRow& below = row_of(rings[i], adm_neighbour(y + 1, plan_.height));
      for (std::size_t kind = 0; kind < 2; ++kind) {
        find_thresholds(above.neighbour[kind].get(), row.neighbour[kind].get(),
            below.neighbour[kind].get(), row.place[kind].get());
        AdmBandSums& of_kind = kind == 0 ? sums.masked[i].detail : sums.masked[i].additive;
        for (std::size_t band = 0; band < kAdmBands; ++band) {
          const AdmShifts& shifts = plan_.shifts[band];
          const int unit = is_deep ? 0 : band == 2 ? 12 : 10;
          const auto sum =
              static_cast<std::int64_t>(masked_cubes<is_deep>(row.values[kind][band].get(),
                  thresholds_.get(), factors_of(i)[band], unit, shifts, counted_));
          of_kind[band] += rounded_shift(sum, shifts.row);
        }
      }
    }
  }

  void find_thresholds(const Coefficient* HWY_RESTRICT above, const Coefficient* HWY_RESTRICT row,
      const Coefficient* HWY_RESTRICT below, const Coefficient* HWY_RESTRICT place) {
    Coefficient* HWY_RESTRICT to = thresholds_.get();
    for (std::int64_t x = counted_.first; x < counted_.last; ++x) {
      to[x] = place[x] + above[x - 1] + above[x] + above[x + 1] + row[x - 1] + row[x] + row[x + 1] +
              below[x - 1] + below[x] + below[x + 1];
    }
  }

  static MaskedRow& row_of(Ring& ring, std::int64_t y) {
    return ring[static_cast<std::size_t>(y % 3)];
  }
  const std::array<std::int64_t, kAdmBands>& factors_of(std::size_t setting) const {
    return plan_.sensitivities[setting].fixed[static_cast<std::size_t>(plan_.scale)];
  }

  const AdmPlan& plan_;
  std::vector<Wavelet> wavelets_;
  WaveletRow o_, t_;
  PaddedRow<Coefficient> near_, restored_, thresholds_;
  Span counted_, seen_;
  std::vector<std::vector<Ring>> rings_;  // by distorted image, by setting
};

}  // namespace similis::vmaf_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SIMILIS_VMAF_ADM_TILE_INL_H
