// SPDX-License-Identifier: Apache-2.0
// ADM by loops over whole bands of 64-bit integers: the oracle of the other backends. Only the
// constants are formula.h's.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "src/vmaf/adm/formula.h"

namespace similis::vmaf_internal {
namespace {

struct Band {
  std::int64_t width = 0, height = 0;
  std::vector<std::int64_t> values = {};
  Band(std::int64_t w, std::int64_t h)
      : width(w), height(h), values(static_cast<std::size_t>(w * h)) {}
  std::int64_t& at(std::int64_t y, std::int64_t x) {
    return values[static_cast<std::size_t>(y * width + x)];
  }
  std::int64_t at(std::int64_t y, std::int64_t x) const {
    return values[static_cast<std::size_t>(y * width + x)];
  }
};

// Approximation, and the bands h, v, d.
struct Wavelet {
  Band approximation;
  std::array<Band, kAdmBands> bands;
};

std::int64_t wrapped16(std::int64_t value) { return static_cast<std::int16_t>(value); }

Wavelet wavelet(const Band& in, int scale, int bit_depth) {
  const std::int64_t width = (in.width + 1) / 2, height = (in.height + 1) / 2;
  const auto s = static_cast<std::size_t>(scale);
  const int down = scale == 0 ? bit_depth : kAdmShiftDown[s];
  const std::int64_t middle = scale == 0 ? std::int64_t{kAdmLowSum} << (bit_depth - 1) : 0;
  Band low(in.width, height), high(in.width, height);
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < in.width; ++x) {
      std::int64_t of_low = -middle, of_high = 0;
      for (int k = 0; k < 4; ++k) {
        const std::int64_t value = in.at(adm_input(y, k, in.height), x);
        of_low += kAdmLow[static_cast<std::size_t>(k)] * value;
        of_high += kAdmHigh[static_cast<std::size_t>(k)] * value;
      }
      low.at(y, x) = rounded_shift(of_low, down);
      high.at(y, x) = rounded_shift(of_high, down);
    }
  }
  const auto across = [&](const Band& band, const std::array<std::int32_t, 4>& taps) {
    Band result(width, height);
    for (std::int64_t y = 0; y < height; ++y) {
      for (std::int64_t x = 0; x < width; ++x) {
        std::int64_t sum = 0;
        for (int k = 0; k < 4; ++k) {
          sum += taps[static_cast<std::size_t>(k)] * band.at(y, adm_input(x, k, in.width));
        }
        sum = rounded_shift(sum, kAdmShiftAcross[s]);
        result.at(y, x) = scale == 0 ? wrapped16(sum) : sum;
      }
    }
    return result;
  };
  return {
      across(low, kAdmLow), {across(high, kAdmLow), across(low, kAdmHigh), across(high, kAdmHigh)}};
}

double in_float(std::int64_t value) { return static_cast<double>(static_cast<float>(value)); }

bool is_near(const Wavelet& o, const Wavelet& t, std::size_t i) {
  const std::int64_t oh = o.bands[0].values[i], ov = o.bands[1].values[i];
  const std::int64_t th = t.bands[0].values[i], tv = t.bands[1].values[i];
  const double product = in_float(oh * th + ov * tv) / 4096;
  const double original = in_float(oh * oh + ov * ov) / 4096;
  const double distorted = in_float(th * th + tv * tv) / 4096;
  return product >= 0 && product * product >= kAdmCosine * original * distorted;
}

std::int64_t restored(std::int64_t o, std::int64_t t, bool near, double gain_limit, int scale) {
  std::int64_t k = 32768;
  if (o != 0) {
    const std::int64_t size = std::abs(o);
    const int shift =
        scale == 0
            ? 0
            : std::max(0, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(size))) - 15);
    const std::int64_t inverse = (std::int64_t{1} << 30) / rounded_shift(size, shift);
    k = ((o < 0 ? -inverse : inverse) * t + (std::int64_t{1} << (14 + shift))) >> (15 + shift);
    k = std::clamp<std::int64_t>(k, 0, 32768);
  }
  const std::int64_t r = rounded_shift(k * o, 15);
  if (!near || k == 0 || o == 0) return r;
  const double gained = static_cast<double>(r) * gain_limit, limit = static_cast<double>(t);
  return static_cast<std::int64_t>(o > 0 ? std::min(gained, limit) : std::max(gained, limit));
}

struct Split {
  std::array<Band, kAdmBands> restored, added;
};

Split split(const Wavelet& o, const Wavelet& t, double gain_limit, int scale) {
  Split result{o.bands, o.bands};
  for (std::size_t i = 0; i < o.approximation.values.size(); ++i) {
    const bool near = is_near(o, t, i);
    for (std::size_t band = 0; band < kAdmBands; ++band) {
      const std::int64_t of_t = t.bands[band].values[i];
      const std::int64_t r = restored(o.bands[band].values[i], of_t, near, gain_limit, scale);
      result.restored[band].values[i] = r;
      result.added[band].values[i] = scale == 0 ? wrapped16(of_t - r) : of_t - r;
    }
  }
  return result;
}

// A masker's weight at its place and at its neighbours.
struct Weights {
  std::int64_t place, neighbour;
};

Weights weights_of(std::int64_t m, std::int64_t factor, int scale, int band) {
  if (scale == 0) {
    const std::int64_t rounding = band == 2 ? 65535 : 16384;
    const std::int64_t c = std::abs(wrapped16((factor * m + rounding) >> (band == 2 ? 17 : 15)));
    return {(8738 * c + 2048) >> 12, (4369 * c + 2048) >> 12};
  }
  const std::int64_t c = std::abs(rounded_shift(factor * m, 28)), half = std::int64_t{1} << 31;
  return {(286331153 * c - half) >> 32, (143165577 * c - half) >> 32};
}

AdmBandSums masked(const std::array<Band, kAdmBands>& x, const std::array<Band, kAdmBands>& m,
    const std::array<std::int64_t, kAdmBands>& factors, int scale) {
  const std::int64_t width = x[0].width, height = x[0].height;
  Band place(width, height), neighbour(width, height);  // of the three bands together
  for (std::size_t band = 0; band < kAdmBands; ++band) {
    for (std::size_t i = 0; i < place.values.size(); ++i) {
      const Weights weights =
          weights_of(m[band].values[i], factors[band], scale, static_cast<int>(band));
      place.values[i] += weights.place;
      neighbour.values[i] += weights.neighbour;
    }
  }
  const auto threshold = [&](std::int64_t row, std::int64_t column) {
    std::int64_t sum = place.at(row, column);
    for (int dy = -1; dy <= 1; ++dy) {
      for (int dx = -1; dx <= 1; ++dx) {
        if (dy == 0 && dx == 0) continue;
        sum += neighbour.at(adm_neighbour(row + dy, height), adm_neighbour(column + dx, width));
      }
    }
    return sum;
  };
  const std::int64_t top = adm_first_counted(height), left = adm_first_counted(width);
  AdmBandSums sums{};
  for (std::size_t band = 0; band < kAdmBands; ++band) {
    const AdmShifts shifts = adm_shifts(scale, static_cast<int>(band), width, height);
    const int unit = scale > 0 ? 0 : band == 2 ? 12 : 10;
    for (std::int64_t row = top; row < height - top; ++row) {
      std::int64_t of_row = 0;
      for (std::int64_t column = left; column < width - left; ++column) {
        const std::int64_t product = factors[band] * x[band].at(row, column);
        const std::int64_t size = std::abs(scale == 0 ? product : rounded_shift(product, 28));
        const std::int64_t z = std::max<std::int64_t>(0, size - (threshold(row, column) << unit));
        of_row += rounded_shift(rounded_shift(z * z, shifts.cube) * z, shifts.column);
      }
      sums[band] += rounded_shift(of_row, shifts.row);
    }
  }
  return sums;
}

AdmBandSums reference_sums(const std::array<Band, kAdmBands>& o, int scale) {
  const std::int64_t width = o[0].width, height = o[0].height;
  const std::int64_t top = adm_first_counted(height), left = adm_first_counted(width);
  const AdmShifts shifts = adm_reference_shifts(scale, width - 2 * left, height - 2 * top);
  AdmBandSums sums{};
  for (std::size_t band = 0; band < kAdmBands; ++band) {
    for (std::int64_t row = top; row < height - top; ++row) {
      std::int64_t of_row = 0;
      for (std::int64_t column = left; column < width - left; ++column) {
        const std::int64_t size = std::abs(o[band].at(row, column));
        const std::int64_t square =
            scale == 0 ? size * size
                       : (size * size + (std::int64_t{1} << shifts.cube)) >> shifts.cube;
        of_row += rounded_shift(square * size, shifts.column);
      }
      sums[band] += rounded_shift(of_row, shifts.row);
    }
  }
  return sums;
}

}  // namespace

AdmSums reference_adm(const PlanePair& planes, std::span<const AdmSetting> settings) {
  const auto band = [](const Plane& plane) {
    Band result(plane.width, plane.height);
    for (std::int64_t y = 0; y < plane.height; ++y) {
      for (std::int64_t x = 0; x < plane.width; ++x) result.at(y, x) = plane.at(y, x);
    }
    return result;
  };
  Band reference = band(planes.reference), distorted = band(planes.distorted);
  AdmSums sums;
  for (int scale = 0; scale < kAdmScales; ++scale) {
    const Wavelet o = wavelet(reference, scale, planes.reference.bit_depth);
    const Wavelet t = wavelet(distorted, scale, planes.reference.bit_depth);
    AdmScaleSums& of_scale = sums[static_cast<std::size_t>(scale)];
    of_scale.reference = reference_sums(o.bands, scale);
    for (const AdmSetting& setting : settings) {
      const Split parts = split(o, t, setting.gain_limit, scale);
      const auto factors = adm_sensitivity(setting).fixed[static_cast<std::size_t>(scale)];
      of_scale.masked.push_back({masked(parts.restored, parts.added, factors, scale),
          masked(parts.added, parts.restored, factors, scale)});
    }
    reference = o.approximation;
    distorted = t.approximation;
  }
  return sums;
}

}  // namespace similis::vmaf_internal
