// SPDX-License-Identifier: Apache-2.0
// The formula of libvmaf's float_ssim for the averages of a window, and its weights, for CPU and
// GPU. The places where libvmaf rounds to f32 and where it goes on in f64 are part of the
// definition.
// Source: Wang et al., IEEE TIP 13(4), 2004, eq. 6, 9, 10, as Tom Distler's iqa has them.
#pragma once

#include <cmath>
#include <cstdint>

#include "src/core/host_device.h"

namespace similis::libvmaf_ssim_internal {

constexpr std::int64_t kGaussRadius = 5;
constexpr std::int64_t kGaussWindow = 2 * kGaussRadius + 1;
constexpr float kGauss[kGaussWindow] = {.001028f, .007599f, .036001f, .109361f, .213006f, .266012f,
    .213006f, .109361f, .036001f, .007599f, .001028f};

// Between the scales of float_ms_ssim.
constexpr std::int64_t kLowPassRadius = 4;
constexpr std::int64_t kLowPassWindow = 2 * kLowPassRadius + 1;
/// Symmetric both ways; the last of the last is the centre.
constexpr float kLowPass[kLowPassRadius + 1][kLowPassRadius + 1] = {
    {.000714f, -.000450f, -.002090f, .007132f, .016114f},
    {-.000450f, .000283f, .001316f, -.004490f, -.010146f},
    {-.002090f, .001316f, .006115f, -.020867f, -.047149f},
    {.007132f, -.004490f, -.020867f, .071207f, .160885f},
    {.016114f, -.010146f, -.047149f, .160885f, .363505f}};

/// Row and column of the low-pass, 0 to 8.
SIMILIS_HOST_DEVICE float low_pass(int row, int column) {
  return kLowPass[row > kLowPassRadius ? kLowPassWindow - 1 - row : row]
                 [column > kLowPassRadius ? kLowPassWindow - 1 - column : column];
}

/// Averages under a window, each rounded to f32.
struct FloatMoments {
  float x, y, xx, yy, xy;
};

struct Similarity {
  double luminance, contrast, structure;
};

SIMILIS_HOST_DEVICE Similarity similarity(const FloatMoments& m) {
  constexpr float c1 = (0.01f * 255) * (0.01f * 255), c2 = (0.03f * 255) * (0.03f * 255);
  constexpr float c3 = c2 / 2;
  const float difference_x = m.xx - m.x * m.x, difference_y = m.yy - m.y * m.y;
  const float variance_x = difference_x > 0 ? difference_x : 0;
  const float variance_y = difference_y > 0 ? difference_y : 0;
  const float covariance = m.xy - m.x * m.y;
  const float deviations =
      static_cast<float>(std::sqrt(static_cast<double>(variance_x * variance_y)));
  // Equal and flat: rounding may leave a covariance below 0.
  const float correlated = covariance < 0 && deviations <= 0 ? 0 : covariance;
  return {.luminance = (2.0 * m.x * m.y + c1) / (m.x * m.x + m.y * m.y + c1),
      .contrast = (2.0 * deviations + c2) / (variance_x + variance_y + c2),
      .structure = (correlated + c3) / (deviations + c3)};
}

/// A position mirrored into an extent, the outermost sample twice. At most one extent outside.
SIMILIS_HOST_DEVICE std::int64_t mirrored(std::int64_t position, std::int64_t extent) {
  return position < 0 ? -1 - position : position < extent ? position : 2 * extent - 1 - position;
}

}  // namespace similis::libvmaf_ssim_internal
