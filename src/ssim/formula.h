// SPDX-License-Identifier: Apache-2.0
// SSIM of one pixel from the moments of its window, and its derivatives.
// With s = x + y, d = x - y and G the window average:
//   mean_s = G s,  var_s = max(0, G s² - mean_s²),  and the same for d
//   1 - SSIM = p + q - pq,  p = mean_d² / a,  q = var_d / b
// Four averages where x, y, x², y², xy take five; exactly 0 for equal images; no cancellation as
// they become equal. Source: Wang et al. 2004, eq. 13, with x = (s + d)/2 and y = (s - d)/2.
#pragma once

#include "src/core/host_device.h"

namespace similis::ssim_internal {

template <class T> struct Moments { T mean_s, mean_d, var_s, var_d; };

template <class T> struct Constants {
  T c1, c2;  // (k1·data_range)², (k2·data_range)²
};

template <class T> struct Dissimilarity {
  T value;
  Moments<T> gradient;
};

/// A denominator that is 0 (k1 or k2 is 0 and the image flat) belongs to a numerator that is 0 too
/// or that it cannot exceed: the quotient is then 0.
template <class T> SIMILIS_HOST_DEVICE T quotient(T numerator, T denominator) {
  return numerator / (denominator > 0 ? denominator : T(1));
}

/// 1 - SSIM.
template <class T>
SIMILIS_HOST_DEVICE Dissimilarity<T> dissimilarity(const Moments<T>& m, const Constants<T>& c) {
  const T a = (m.mean_s * m.mean_s + m.mean_d * m.mean_d) / 2 + c.c1;
  const T b = (m.var_s + m.var_d) / 2 + c.c2;
  const T p = quotient(m.mean_d * m.mean_d, a), q = quotient(m.var_d, b);
  return {.value = p + q - p * q,
      .gradient = {.mean_s = quotient(-(1 - q) * p * m.mean_s, a),
          .mean_d = quotient((1 - q) * (2 - p) * m.mean_d, a),
          .var_s = quotient(-(1 - p) * q, 2 * b),
          .var_d = quotient((1 - p) * (2 - q), 2 * b)}};
}

/// 1 - cs, the contrast and structure term alone, as the finer levels of MS-SSIM take it.
template <class T>
SIMILIS_HOST_DEVICE Dissimilarity<T> contrast_dissimilarity(
    const Moments<T>& m, const Constants<T>& c) {
  const T b = (m.var_s + m.var_d) / 2 + c.c2;
  const T q = quotient(m.var_d, b);
  return {.value = q,
      .gradient = {
          .mean_s = 0, .mean_d = 0, .var_s = quotient(-q, 2 * b), .var_d = quotient(2 - q, 2 * b)}};
}

}  // namespace similis::ssim_internal
