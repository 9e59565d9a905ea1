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

/// The causal recursion starts at six times Σ pole^k·s[k] over the mirrored signal: its first
/// sample and, weighted, those from 1 to `end`; all divided by `divisor`. Long lines take their
/// first samples alone.
class MirroredSum {
 public:
  explicit SIMILIS_HOST_DEVICE MirroredSum(std::int64_t count)
      : end(count > kHorizon ? kHorizon : count), count_(count) {
    if (count > kHorizon) return;
    double whole = 1;  // pole^(2·count - 2), a period
    for (std::int64_t k = 0; k < 2 * count - 2; ++k) whole *= kPole;
    back_ = whole / kPole;
    divisor = 1 - whole;
  }
  /// Weights of the samples from 1 on; call it for each in order.
  SIMILIS_HOST_DEVICE double weight(std::int64_t k) {
    const double result = k == count_ - 1 ? power_ : power_ + back_;
    power_ *= kPole;
    back_ /= kPole;
    return result;
  }

  std::int64_t end;
  double divisor = 1;

 private:
  std::int64_t count_;
  double power_ = kPole, back_ = 0;  // pole^k, pole^(2·count - 2 - k)
};

SIMILIS_HOST_DEVICE double causal_step(double sample, double before) {
  return 6 * sample + kPole * before;
}
SIMILIS_HOST_DEVICE double anticausal_start(double last, double before) {
  return kPole / (kPole * kPole - 1) * (last + kPole * before);
}
SIMILIS_HOST_DEVICE double anticausal_step(double causal, double after) {
  return kPole * (after - causal);
}

/// In place. Transposed: the filter's matrix is W F W⁻¹ for a symmetric F, W halving both ends.
template <class T>
SIMILIS_HOST_DEVICE void filter_line(
    T* line, std::int64_t count, std::int64_t stride, bool is_transposed) {
  if (count == 1) return;
  T* last = line + (count - 1) * stride;
  if (is_transposed) *line *= 2, *last *= 2;
  MirroredSum start(count);
  double value = line[0];
  for (std::int64_t k = 1; k < start.end; ++k) {
    value += start.weight(k) * static_cast<double>(line[k * stride]);
  }
  value = value / start.divisor * 6;
  *line = static_cast<T>(value);
  double before = value;
  for (std::int64_t k = 1; k < count; ++k) {
    before = value;
    value = causal_step(static_cast<double>(line[k * stride]), value);
    line[k * stride] = static_cast<T>(value);
  }
  value = anticausal_start(value, before);
  *last = static_cast<T>(value);
  for (std::int64_t k = count - 2; k >= 0; --k) {
    value = anticausal_step(static_cast<double>(line[k * stride]), value);
    line[k * stride] = static_cast<T>(value);
  }
  if (is_transposed) *line /= 2, *last /= 2;
}

}  // namespace similis::warp_internal
