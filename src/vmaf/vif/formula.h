// SPDX-License-Identifier: Apache-2.0
// The constants of VIF and its logarithm, once for every backend.
//
// Moments of a window are those of Gaussian taps of 16 bits. With the variances s1, s2 and the
// covariance s12 of a window, in code values of 8 bits times 2^16:
//   g = s12/s1,  v = s2 - g s12,  information = log2(1 + g² s1/(v + 2)),  of log2(1 + s1/2)
// Source: Sheikh and Bovik, IEEE TIP 15(2), 2006, in libvmaf's integers.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "src/vmaf/vif/vif.h"

namespace similis::vmaf_internal {

/// The radius of a scale's window.
constexpr std::array<int, kVifScales> kVifRadius = {8, 4, 2, 1};

/// Taps from the window's end to its centre; their mirror image follows.
constexpr std::array<std::array<std::int32_t, 9>, kVifScales> kVifTaps = {{
    {489, 935, 1640, 2640, 3896, 5274, 6547, 7455, 7784},
    {1244, 3663, 7925, 12590, 14692},
    {3571, 16004, 26386},
    {10904, 43728},
}};

/// The tap at `offset` from the window's centre.
constexpr std::int32_t vif_tap(int scale, int offset) {
  const auto at = static_cast<std::size_t>(scale);
  return kVifTaps[at][static_cast<std::size_t>(kVifRadius[at] - (offset < 0 ? -offset : offset))];
}

/// The variance of the noise that the eye adds, and the least that is not flat.
constexpr std::int32_t kVifNoise = 131072;

/// 2048·log2(i), rounded, of i from 2^15 to 2^16 - 1.
inline const std::array<std::uint16_t, 65536>& vif_logarithms() {
  static const auto table = [] {
    std::array<std::uint16_t, 65536> logs{};
    for (std::size_t i = 32768; i < logs.size(); ++i) {
      const float log = static_cast<float>(std::log2(static_cast<double>(i)));
      logs[i] = static_cast<std::uint16_t>(std::floor(2048.0 * log + 0.5));
    }
    return logs;
  }();
  return table;
}

/// 2048·log2(value), of the 16 leading bits of a value of at least 2^15.
inline std::int64_t vif_logarithm(std::int64_t value) {
  const int shift = std::bit_width(static_cast<std::uint64_t>(value)) - 16;
  return vif_logarithms()[static_cast<std::size_t>(value >> shift)] + 2048 * shift;
}

}  // namespace similis::vmaf_internal
