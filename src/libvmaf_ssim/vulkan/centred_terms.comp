#version 460
#extension GL_GOOGLE_include_directive : require
// SPDX-License-Identifier: Apache-2.0
// Terms of samples of up to 10 bits: sums about the middle of the range fit 32 bits down a column,
// and all that a term is made of is a whole number below 2^53 (integer/formula.h, CentredMoments).
#include "src/gpu/glsl/prelude.glsl"
#include "src/gpu/glsl/soft_double.glsl"

#define SUM int
const int kProducts = 4;  // x, y, x² + y² - middle², xy
#include "src/libvmaf_ssim/vulkan/terms.glsl"

void multiply(int x, int y, out int products[kProducts]) {
  int middle = 1 << (bit_depth - 1), a = x - middle, b = y - middle;
  products[0] = a;
  products[1] = b;
  products[2] = a * a + b * b - middle * middle;
  products[3] = a * b;
}

u64 term_of(i64 m[kProducts], Weight k) {
  i64 middle = i64(1 << (bit_depth - 1));
  i64 mean_x = m[0] + middle * k.whole, mean_y = m[1] + middle * k.whole;
  i64 variances = (m[2] + middle * middle * k.whole) * k.whole - (m[0] * m[0] + m[1] * m[1]);
  i64 covariance = m[3] * k.whole - m[0] * m[1];
  u64 luminance = f64_sum(f64_of_int(i64(2) * (mean_x * mean_y)), k.c1);
  u64 structure = f64_sum(k.c2, f64_of_int(i64(2) * covariance));
  u64 divisor = f64_product(f64_sum(f64_of_int(mean_x * mean_x + mean_y * mean_y), k.c1),
      f64_sum(f64_of_int(variances), k.c2));
  return f64_quotient(f64_product(f64_product(k.w, luminance), structure), divisor);
}
