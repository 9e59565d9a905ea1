// SPDX-License-Identifier: Apache-2.0
// The term of one pixel in libvmaf's integer SSIM, from the sums of its window, for CPU and GPU.
//
// With w the window's weight inside the plane, the sums Σ over the window, and c1, c2 that grow
// with w²,
//   term = w (2 Σx Σy + c1) (c2 + 2 (w Σxy - Σx Σy))
//          / ((Σx² + Σy² + c1) (w Σ(x²) - Σx² + w Σ(y²) - Σy² + c2))
// in doubles, left to right, no multiplication fused with an addition: the score is Σ term / Σ w.
// Source: libvmaf's feature `ssim`, after daala's dump_ssim.
//
// Up to 10 bits every product and difference in it is a whole number below 2^53, so double
// arithmetic is exact there and any other way to the same whole numbers gives the same term. Sums
// about the middle of the range do: variances and covariance do not depend on the origin.
#pragma once

#include <cstdint>

#include "src/core/host_device.h"

namespace similis::libvmaf_ssim_internal {

constexpr std::int64_t kRadius = 4;
constexpr std::int64_t kWindow = 2 * kRadius + 1;
/// The window is the product of these down and across; they are symmetric: the centre is last.
constexpr int kTaps[kRadius + 1] = {2, 9, 28, 55, 68};

/// The tap at distance |offset| from the centre.
SIMILIS_HOST_DEVICE int tap_at(std::int64_t offset) {
  constexpr int taps[] = {68, 55, 28, 9, 2};
  return taps[offset < 0 ? -offset : offset];
}

/// The sum of the taps around a position that lie inside the extent.
SIMILIS_HOST_DEVICE int weight_inside(std::int64_t position, std::int64_t extent) {
  int weight = 0;
  for (std::int64_t offset = -kRadius; offset <= kRadius; ++offset) {
    const std::int64_t at = position + offset;
    if (at >= 0 && at < extent) weight += tap_at(offset);
  }
  return weight;
}

/// A window's weight and the constants that follow from it.
struct Weight {
  double w, c1, c2;
};
SIMILIS_HOST_DEVICE Weight weight_of(double w, int bit_depth) {
  const double peak = static_cast<double>((1 << bit_depth) - 1);
  return {w, peak * peak * (0.01 * 0.01) * w * w, peak * peak * (0.03 * 0.03) * w * w};
}

/// Sums of a window, in whole numbers.
struct Moments {
  double x, y, xx, yy, xy;
};

SIMILIS_HOST_DEVICE double term_of(const Moments& m, const Weight& k) {
  const double mean_xx = m.x * m.x, mean_xy = m.x * m.y, mean_yy = m.y * m.y;
  return k.w * (2 * mean_xy + k.c1) * (k.c2 + 2 * (m.xy * k.w - mean_xy)) /
         ((mean_xx + mean_yy + k.c1) * (m.xx * k.w - mean_xx + m.yy * k.w - mean_yy + k.c2));
}

/// The origin of CentredMoments: the middle of the range.
SIMILIS_HOST_DEVICE constexpr int middle_of_range(int bit_depth) { return 1 << (bit_depth - 1); }

/// Sums of a window about the middle of the range, of at most 10 bits. With x and y from the
/// middle, `squares` is the sum of x² + y² - middle², which keeps eight bits within 32 with a sign.
struct CentredMoments {
  double x, y, squares, xy;
};

SIMILIS_HOST_DEVICE double term_of(const CentredMoments& m, const Weight& k, double middle) {
  const double mean_x = m.x + middle * k.w, mean_y = m.y + middle * k.w;
  const double variances = (m.squares + middle * middle * k.w) * k.w - (m.x * m.x + m.y * m.y);
  const double covariance = m.xy * k.w - m.x * m.y;
  return k.w * (2 * (mean_x * mean_y) + k.c1) * (k.c2 + 2 * covariance) /
         ((mean_x * mean_x + mean_y * mean_y + k.c1) * (variances + k.c2));
}

}  // namespace similis::libvmaf_ssim_internal
