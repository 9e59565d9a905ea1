// SPDX-License-Identifier: Apache-2.0
// SSIM of one window in f32 and its derivatives, at the rate at which instructions issue. formula.h
// divides six times by IEEE's rules, each behind a guard; this formula takes two approximate
// reciprocals.
#pragma once

#include <algorithm>
#include <cmath>

#include "src/gpu/cuda/reciprocal.h"
#include "src/gpu/cuda/vendor.h"
#include "src/ssim/ssim.h"

namespace similis::ssim_internal {

// Returns 2·C1 and 2·C2 as point() takes them: C1 is infinite for the contrast term alone, and
// neither is 0, so that no quotient is 0/0.
inline Constants<float> doubled_constants(const Pass& pass) {
  const float least = 1e-37f;
  const auto doubled = [&](double c) { return std::max(least, static_cast<float>(2 * c)); };
  return {pass.term == Term::contrast ? INFINITY : doubled(pass.c1), doubled(pass.c2)};
}

// Computes halves of p, q and 1 - SSIM, as formula.h defines them, from averages; `shift` is that
// of s. Each quotient is a product with a reciprocal, and 2a and 2b stand for a and b.
struct Point {
  float value, p, q, rest_p, reciprocal_a, reciprocal_b, mean_s, mean_d;
};
__device__ __forceinline__ Point point(
    float s, float d, float ss, float dd, float shift, float c1, float c2) {
  Point r;
  const float var_s = fmaxf(0.f, fmaf(-s, s, ss)), var_d = fmaxf(0.f, fmaf(-d, d, dd));
  r.mean_s = s + shift;
  r.mean_d = d;
  const float squared = d * d;
  r.reciprocal_a = gpu::approximate_reciprocal(fmaf(r.mean_s, r.mean_s, squared + c1));
  r.reciprocal_b = gpu::approximate_reciprocal(var_s + (var_d + c2));
  r.p = squared * r.reciprocal_a;
  r.q = var_d * r.reciprocal_b;
  r.rest_p = fmaf(-2.f, r.p, 1.f);
  r.value = fmaf(r.q, r.rest_p, r.p);
  return r;
}

// Computes a quarter of the derivative of 1 - SSIM of one window by each pixel's x, which is
// weight·(f0 - s·f1 + d·f2).
__device__ __forceinline__ void derivatives_of(
    const Point& r, float shifted_s, float* f0, float* f1, float* f2) {
  const float k = fmaf(-2.f, r.q, 1.f) * r.reciprocal_a, h = r.rest_p * r.reciprocal_b;
  *f1 = h * r.q;
  *f2 = fmaf(-h, r.q, h);
  const float by_means = k * fmaf(-r.p, r.mean_s, fmaf(-r.p, r.mean_d, r.mean_d));
  *f0 = fmaf(-r.mean_d, *f2, fmaf(shifted_s, *f1, by_means));
}

}  // namespace similis::ssim_internal
