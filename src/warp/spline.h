// SPDX-License-Identifier: Apache-2.0
// Cubic B-spline coefficients of one line, for CPU and GPU: a causal and an anticausal recursion,
// the signal mirrored at its ends. Source: M. Unser, "Splines: a perfect fit for signal and image
// processing", IEEE Signal Processing Magazine 16(6), 1999.
#pragma once

#include <cstdint>

#include "src/core/host_device.h"

namespace similis::warp_internal {

constexpr double kPole = -0.26794919243112270647;  // √3 - 2
constexpr std::int64_t kHorizon = 32;              // |kPole|³² is below 2⁻⁵³ of 1

// The causal recursion's first value: Σ pole^k·s[k] over the mirrored signal.
template <class T>
SIMILIS_HOST_DEVICE double causal_start(const T* line, std::int64_t count, std::int64_t stride) {
  double sum = line[0], power = kPole;
  if (count > kHorizon) {
    for (std::int64_t k = 1; k < kHorizon; ++k, power *= kPole) {
      sum += power * static_cast<double>(line[k * stride]);
    }
    return sum;
  }
  double whole = 1;  // pole^(2·count - 2), a period
  for (std::int64_t k = 0; k < 2 * count - 2; ++k) whole *= kPole;
  double back = whole / kPole;  // pole^(2·count - 2 - k)
  for (std::int64_t k = 1; k < count - 1; ++k, power *= kPole, back /= kPole) {
    sum += (power + back) * static_cast<double>(line[k * stride]);
  }
  sum += power * static_cast<double>(line[(count - 1) * stride]);
  return sum / (1 - whole);
}

/// In place. Transposed: the filter's matrix is W F W⁻¹ for a symmetric F, W halving both ends.
template <class T>
SIMILIS_HOST_DEVICE void filter_line(
    T* line, std::int64_t count, std::int64_t stride, bool is_transposed) {
  if (count == 1) return;
  T* last = line + (count - 1) * stride;
  if (is_transposed) *line *= 2, *last *= 2;
  double value = causal_start(line, count, stride) * 6;
  *line = static_cast<T>(value);
  double before = value;
  for (std::int64_t k = 1; k < count; ++k) {
    before = value;
    value = 6 * static_cast<double>(line[k * stride]) + kPole * value;
    line[k * stride] = static_cast<T>(value);
  }
  value = kPole / (kPole * kPole - 1) * (value + kPole * before);
  *last = static_cast<T>(value);
  for (std::int64_t k = count - 2; k >= 0; --k) {
    value = kPole * (value - static_cast<double>(line[k * stride]));
    line[k * stride] = static_cast<T>(value);
  }
  if (is_transposed) *line /= 2, *last /= 2;
}

}  // namespace similis::warp_internal
