// SPDX-License-Identifier: Apache-2.0
// SSIMULACRA 2.1 of one pixel, in the reference program's roundings: samples to linear light,
// linear light to X, Y and B, and the three terms from a pixel and its windows. CPU and GPU compile
// the same text, which spells fused multiply-adds out, so that both have the same bits.
// Branch-free: a loop over any of these becomes vector code for every target with such an
// instruction.
#pragma once

#include <cmath>
#include <cstdint>

#include "src/core/host_device.h"
#include "src/core/tensor/convert.h"

namespace similis::ssimulacra2_internal {

/// a·b + c, rounded once.
SIMILIS_HOST_DEVICE float fused(float a, float b, float c) { return ::fmaf(a, b, c); }

/// An sRGB sample in light: below the knee a line, above it a quotient of polynomials.
SIMILIS_HOST_DEVICE float linear_of_srgb(float v) {
  float p = fused(8.210152774e-01f, v, 7.961564959e-01f);
  p = fused(p, v, 1.624820318e-01f);
  p = fused(p, v, 1.043637593e-02f);
  p = fused(p, v, 2.200248328e-04f);
  float q = fused(6.521209011e-03f, v, -5.512498495e-02f);
  q = fused(q, v, 4.987528350e-01f);
  q = fused(q, v, 1.076976492e+00f);
  q = fused(q, v, 2.631846970e-01f);
  const float curve = p / q, line = v * (1 / 12.92f);
  return v <= 0.04045f ? line : curve;
}

/// A sample over a background that shows where it is transparent; no fused multiply-add.
SIMILIS_HOST_DEVICE float blended(float sample, float alpha, float background) {
  return sample * alpha + (1 - alpha) * background;
}

constexpr float kOpsinBias = 0.0037930732552754493f;
constexpr float kNegativeCubeRootOfBias = -0x1.3f64eap-3f;

/// The cube root of x ≥ 0 (x > 0 if so said) less that of the bias: a guess by the exponent, three
/// steps of Newton's for 1/∛x, a fourth in another form, and x/(∛x)².
template <bool is_positive> SIMILIS_HOST_DEVICE float biased_cube_root(float x) {
  const std::uint32_t bits = bits_as<std::uint32_t>(x);
  const std::uint32_t guess = 0x54800000u - (bits >> 23) * 0x002aaaaau;
  float r = bits_as<float>(is_positive || bits != 0 ? guess : 0u);
  const float third = (1.0f / 3) * x;
  float squared = r * r;
  r = fused(-third, squared * squared, (4.0f / 3) * r);
  squared = r * r;
  r = fused(-third, squared * squared, (4.0f / 3) * r);
  squared = r * r;
  r = fused(-third, squared * squared, (4.0f / 3) * r);
  squared = r * r;
  r = fused(1.0f / 3, fused(-x, squared * squared, r), r);
  squared = r * r;
  return fused(squared, x, kNegativeCubeRootOfBias);
}

/// One row of the matrix from linear RGB to cone responses, and the response.
template <bool is_positive>
SIMILIS_HOST_DEVICE float response(float m0, float m1, float m2, float r, float g, float b) {
  const float mixed = fused(m0, r, fused(m1, g, fused(m2, b, kOpsinBias)));
  return biased_cube_root<is_positive>(is_positive || !(mixed < 0) ? mixed : 0);
}

struct Xyb {
  float x, y, b;
};

/// Shifted so that all are positive for colours of sRGB. Light that is_positive, 0 included, takes
/// fewer steps to the same bits.
template <bool is_positive = false>
SIMILIS_HOST_DEVICE Xyb positive_xyb(float r, float g, float b) {
  constexpr float l0 = .30f, m0 = .23f, lm2 = .078f;
  constexpr float s0 = 0.24342268924547819f, s1 = 0.20476744424496821f;
  const float l = response<is_positive>(l0, 1 - lm2 - l0, lm2, r, g, b);
  const float m = response<is_positive>(m0, 1 - lm2 - m0, lm2, r, g, b);
  const float s = response<is_positive>(s0, s1, 1 - s0 - s1, r, g, b);
  const float x = .5f * (l - m), y = .5f * (l + m);
  return {x * 14 + .42f, y + .01f, (s - y) + .55f};
}

/// A pixel of the next scale: ((top left + top right) + bottom left) + bottom right, over four.
SIMILIS_HOST_DEVICE float quarter(float tl, float tr, float bl, float br) {
  return (tl + tr + bl + br) * .25f;
}

/// SSIM without the quotient of means, from the windows' averages, before it is divided.
struct Similarity {
  float numerator, denominator;
};
SIMILIS_HOST_DEVICE Similarity similarity(
    float mean_x, float mean_y, float square_x, float square_y, float product) {
  const float difference = mean_x - mean_y;
  const float means = 1 - difference * difference;
  const float covariance = 2 * (product - mean_x * mean_y) + .0009f;
  const float variances = (square_x - mean_x * mean_x) + (square_y - mean_y * mean_y) + .0009f;
  return {means * covariance, variances};
}
SIMILIS_HOST_DEVICE double dissimilarity_of_quotient(float similarity) {
  const double d = 1 - static_cast<double>(similarity);
  return d < 0 ? 0 : d;
}
/// 1 - SSIM, at least 0.
SIMILIS_HOST_DEVICE double dissimilarity(
    float mean_x, float mean_y, float square_x, float square_y, float product) {
  const Similarity s = similarity(mean_x, mean_y, square_x, square_y, product);
  return dissimilarity_of_quotient(s.numerator / s.denominator);
}

/// One and how far a pixel is from its window's mean, in both pictures.
struct Edges {
  double of_x, of_y;
};
SIMILIS_HOST_DEVICE Edges edges_of(float x, float mean_x, float y, float mean_y) {
  return {
      1 + static_cast<double>(::fabsf(x - mean_x)), 1 + static_cast<double>(::fabsf(y - mean_y))};
}
/// The change of a pixel's distance from its window's mean: above 0 the distorted picture has an
/// edge that the reference has not, below 0 it has lost one.
SIMILIS_HOST_DEVICE double edge_change(float x, float mean_x, float y, float mean_y) {
  const Edges edges = edges_of(x, mean_x, y, mean_y);
  return edges.of_y / edges.of_x - 1;
}
SIMILIS_HOST_DEVICE double ringing(double change) { return change < 0 ? 0 : change; }
SIMILIS_HOST_DEVICE double blurring(double change) { return change > 0 ? 0 : -change; }

SIMILIS_HOST_DEVICE double fourth_power(double t) { return (t * t) * (t * t); }

}  // namespace similis::ssimulacra2_internal
