// SPDX-License-Identifier: Apache-2.0
// LNCC of one pixel from the moments of its window, and its derivatives by them.
//   a = k·covariance, b and c = k·variances of x and y;  B = max(b, dr), C = max(c, dr)
//   squared  (a² + nr) / (B·C + dr)      signed  a / √(B·C)
// By Cauchy and Schwarz a² ≤ b·c ≤ B·C, so values leave [-1, 1] by rounding alone or where
// nr > dr; there they are clamped and have no derivative.
#pragma once

#include <cmath>

#include "src/core/host_device.h"
#include "src/gpu/cuda/reciprocal.h"

namespace similis::lncc_internal {

template <class T> struct Moments { T a, b, c; };

template <class T> struct Constants {
  T nr, dr;  // smooth_nr·k, smooth_dr·k
};

template <class T> struct Correlation {
  T value;
  Moments<T> gradient;
};

template <class T> SIMILIS_HOST_DEVICE T at_least(T value, T bound) {
  return value < bound ? bound : value;  // NaN stays
}

/// 1 / value, for positive numbers that are no smaller than 1e-300; on CUDA within two units of the
/// last place, in a fifth of the instructions of a division.
template <class T> SIMILIS_HOST_DEVICE T reciprocal(T value) {
#if defined(__CUDA_ARCH__)
  const auto wide = static_cast<double>(value);
  double result = gpu::approximate_reciprocal(wide);
  result = fma(fma(-wide, result, 1.0), result, result);
  return static_cast<T>(fma(fma(-wide, result, 1.0), result, result));
#else
  return 1 / value;
#endif
}

template <class T>
SIMILIS_HOST_DEVICE Correlation<T> squared_correlation(
    const Moments<T>& m, const Constants<T>& constants) {
  const T b = at_least(m.b, constants.dr), c = at_least(m.c, constants.dr);
  const T inverse = reciprocal(b * c + constants.dr);
  const T value = (m.a * m.a + constants.nr) * inverse;
  const T inside = value > 1 ? T(0) : inverse;
  return {.value = value > 1 ? T(1) : value,
      .gradient = {.a = 2 * m.a * inside,
          .b = m.b > constants.dr ? -value * c * inside : T(0),
          .c = m.c > constants.dr ? -value * b * inside : T(0)}};
}

/// 1 / √value within two units of the last place.
SIMILIS_HOST_DEVICE float inverse_root_f32(float value) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
#else
  return 1 / sqrtf(value);
#endif
}

/// squared_correlation() in f32, for nr ≤ dr, so that values pass 1 by rounding alone. Roots of the
/// variances keep their product within f32's range.
SIMILIS_HOST_DEVICE Correlation<float> squared_correlation_f32(
    const Moments<float>& m, const Constants<float>& constants) {
  const float by_b = inverse_root_f32(fmaxf(m.b, constants.dr));
  const float by_c = inverse_root_f32(fmaxf(m.c, constants.dr));
  const float both = by_b * by_c, a = m.a * both;
  const float root = inverse_root_f32(fmaf(constants.dr * both, both, 1.0f));
  const float left = root * root;
  const float value = fmaf(a, a, constants.nr * both * both) * left;
  const float slope = -value * left;
  return {.value = value > 1 ? 1.0f : value,
      .gradient = {.a = 2 * a * both * left,
          .b = m.b > constants.dr ? slope * (by_b * by_b) : 0.0f,
          .c = m.c > constants.dr ? slope * (by_c * by_c) : 0.0f}};
}

/// signed_correlation() in f32.
SIMILIS_HOST_DEVICE Correlation<float> signed_correlation_f32(
    const Moments<float>& m, const Constants<float>& constants) {
  const float by_b = inverse_root_f32(fmaxf(m.b, constants.dr));
  const float by_c = inverse_root_f32(fmaxf(m.c, constants.dr));
  const float both = by_b * by_c, value = m.a * both;
  const float slope = value > 1 || value < -1 ? 0.0f : -0.5f * value;
  return {.value = value > 1    ? 1.0f
                   : value < -1 ? -1.0f
                                : value,
      .gradient = {.a = value > 1 || value < -1 ? 0.0f : both,
          .b = m.b > constants.dr ? slope * (by_b * by_b) : 0.0f,
          .c = m.c > constants.dr ? slope * (by_c * by_c) : 0.0f}};
}

/// `root`: √.
template <class T, class Root>
SIMILIS_HOST_DEVICE Correlation<T> signed_correlation(
    const Moments<T>& m, const Constants<T>& constants, const Root& root) {
  const T b = at_least(m.b, constants.dr), c = at_least(m.c, constants.dr);
  const T inverse = 1 / (root(b) * root(c));
  const T value = m.a * inverse;
  const bool is_inside = value <= 1 && value >= -1;
  const T slope = is_inside ? T(1) : T(0);
  return {.value = value > 1    ? T(1)
                   : value < -1 ? T(-1)
                                : value,
      .gradient = {.a = slope * inverse,
          .b = m.b > constants.dr ? -slope * value / (2 * b) : T(0),
          .c = m.c > constants.dr ? -slope * value / (2 * c) : T(0)}};
}

/// The derivative of the squared measure in a pixel's own window by the pixel of x, with both means
/// constant: the gradient that ANTs follows. x_deviation and y_deviation are the pixels' distances
/// from their window's means. Exchange x and y, and b and c, for the derivative by y.
template <class T>
SIMILIS_HOST_DEVICE T centre_gradient(
    const Moments<T>& m, const Constants<T>& constants, T x_deviation, T y_deviation) {
  const T b = at_least(m.b, constants.dr), c = at_least(m.c, constants.dr);
  const T ratio = m.a / (at_least(m.b, T(0)) + constants.dr);
  return 2 * m.a / (b * c + constants.dr) * (y_deviation - ratio * x_deviation);
}

}  // namespace similis::lncc_internal
