// SPDX-License-Identifier: Apache-2.0
// The constants of ADM, once for every backend: the wavelet, the sensitivity of each band, the
// widths of its integers.
//
// The distorted image's bands are split into what is left of the reference's detail (k times its
// coefficient, 0 ≤ k ≤ 1) and what is added. Each is weighted by the eye's sensitivity, masked by
// the other's neighbourhood, and summed in its third power.
// Source: Li et al., IEEE Trans. Multimedia 13(5), 2011, in libvmaf's integers.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "src/vmaf/adm/adm.h"

namespace similis::vmaf_internal {

constexpr std::array<std::int32_t, 4> kAdmLow = {15826, 27411, 7345, -4240};
constexpr std::array<std::int32_t, 4> kAdmHigh = {-4240, -7345, 27411, -15826};
constexpr std::int32_t kAdmLowSum = 46342;

/// Rounding shifts of the wavelet after columns and after rows; scale 0 has the bit depth and 16.
constexpr std::array<int, kAdmScales> kAdmShiftDown = {0, 0, 16, 16};
constexpr std::array<int, kAdmScales> kAdmShiftAcross = {16, 15, 16, 15};

/// The input of output `i` at tap `k`; the top and left border repeats index 1, the others mirror.
constexpr std::int64_t adm_input(std::int64_t i, int k, std::int64_t extent) {
  const std::int64_t at = 2 * i - 1 + k;
  if (at < 0) return 1;
  return at < extent ? at : 2 * extent - 1 - at;
}

/// The neighbour of a coefficient in a band.
constexpr std::int64_t adm_neighbour(std::int64_t at, std::int64_t extent) {
  if (at < 0) return 1;
  return at < extent ? at : extent - 1;
}

/// The part of an extent that is counted: from first to extent - first.
inline std::int64_t adm_first_counted(std::int64_t extent) {
  return static_cast<std::int64_t>(static_cast<double>(extent) * 0.1 - 0.5);
}

/// The square of the cosine of one degree.
constexpr double kAdmCosine = static_cast<double>(0x1.ffd814p-1f);

/// The smallest whole number whose power of two is at least `value`.
constexpr int ceil_log2(std::int64_t value) {
  return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(value - 1)));
}

/// Sensitivity to each band of a setting.
struct AdmSensitivity {
  std::array<std::array<float, kAdmBands>, kAdmScales> real;
  std::array<std::array<std::int64_t, kAdmBands>, kAdmScales> fixed;  ///< F, in 2^21, 2^23 or 2^32
};
/// Throws InvalidArgument for a table that there is not.
AdmSensitivity adm_sensitivity(const AdmSetting& setting);

/// The widths of a band's integers in a masked sum.
struct AdmShifts {
  int cube;    ///< q: of z²
  int column;  ///< s: of z³
  int row;     ///< S: of a row's sum
  int end;     ///< E - s - S: of the whole
};
constexpr AdmShifts adm_shifts(int scale, int band, std::int64_t width, std::int64_t height) {
  const int row = ceil_log2(height);
  if (scale == 0) {
    const int column = ceil_log2(width) - (band == 2 ? 3 : 4);
    return {band == 2 ? 30 : 29, column, row, (band == 2 ? 57 : 52) - column - row};
  }
  constexpr std::array<int, kAdmScales> ends = {0, 45, 39, 36};
  const int column = ceil_log2(width);
  return {30, column, row, ends[static_cast<std::size_t>(scale)] - column - row};
}

/// The same for the sum of the reference's coefficients, over a region of this size.
constexpr AdmShifts adm_reference_shifts(int scale, std::int64_t width, std::int64_t height) {
  if (scale == 0) {
    const int row = ceil_log2(width * height) > 20 ? ceil_log2(width * height) - 20 : 0;
    return {0, 0, row, 18 - row};
  }
  constexpr std::array<int, kAdmScales> cubes = {0, 31, 30, 31}, ends = {0, 32, 27, 23};
  const auto at = static_cast<std::size_t>(scale);
  const int column = ceil_log2(width), row = ceil_log2(height);
  return {cubes[at], column, row, ends[at] - column - row};
}

}  // namespace similis::vmaf_internal
