// SPDX-License-Identifier: Apache-2.0
// The cut of ADM on the CPU, and the arguments of one scale's pass.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/vmaf/adm/formula.h"
#include "src/vmaf/fused_products.h"

namespace similis::vmaf_internal {

// Rows of a stripe, at most. It transforms 2 rows that its neighbours transform too.
constexpr std::int64_t kAdmMostStripeRows = 64;

// Rows of its input that a stripe may read above and below twice its own: those of two rows more,
// and of the filter.
constexpr std::int64_t kAdmRowsSeen = 8;

/// From a row of approximations to the next one, in whole lines of the cache: their last two
/// vectors may reach beyond the row.
constexpr std::int64_t adm_stride(std::int64_t width) { return (width + 63) / 32 * 32; }

/// Bytes of an approximation of this scale's input: those of scale 0 have 16 bits.
constexpr std::size_t adm_approximation_bytes(int scale) { return scale == 0 ? 2 : 4; }

/// A plane of approximations.
struct AdmPlane {
  const void* values = nullptr;
  std::int64_t width = 0, height = 0;
  template <class T> const T* row(std::int64_t index) const {
    return static_cast<const T*>(values) + index * adm_stride(width);
  }
};

struct AdmPlan {
  /// width, height: of the bands.
  AdmPlan(int at_scale, std::int64_t band_width, std::int64_t band_height,
      std::span<const AdmSetting> given, std::span<const AdmSensitivity> of_given)
      : scale(at_scale),
        width(band_width),
        height(band_height),
        left(adm_first_counted(band_width)),
        top(adm_first_counted(band_height)),
        stripe_rows(equal_stripe_rows(band_height, kAdmMostStripeRows)),
        stripes((band_height + stripe_rows - 1) / stripe_rows),
        settings(given),
        sensitivities(of_given),
        reference_shifts(adm_reference_shifts(at_scale, width - 2 * left, height - 2 * top)) {
    for (int band = 0; band < kAdmBands; ++band) {
      shifts[static_cast<std::size_t>(band)] = adm_shifts(scale, band, width, height);
    }
  }

  int scale;
  std::int64_t width, height, left, top, stripe_rows, stripes;
  std::span<const AdmSetting> settings;
  std::span<const AdmSensitivity> sensitivities;
  AdmShifts reference_shifts;
  std::array<AdmShifts, kAdmBands> shifts;
  // Those of the reference, then those of each distorted image.
  std::vector<Plane> samples;    ///< of scale 0
  std::vector<AdmPlane> inputs;  ///< of the others
  /// The next scale's inputs; empty after the last scale.
  std::vector<void*> approximations;
  bool is_measured = true;
  bool is_fused = fuses_products();
};

}  // namespace similis::vmaf_internal
