#version 460
#extension GL_GOOGLE_include_directive : require
// SPDX-License-Identifier: Apache-2.0
// Terms of samples of up to 16 bits: sums of 64 bits, and every step of the formula is rounded as
// integer/formula.h rounds Moments.
#include "src/gpu/glsl/prelude.glsl"
#include "src/gpu/glsl/soft_double.glsl"

#define SUM i64
const int kProducts = 5;  // x, y, x², y², xy
#include "src/libvmaf_ssim/vulkan/terms.glsl"

void multiply(int x, int y, out i64 products[kProducts]) {
  i64 a = i64(x), b = i64(y);
  products[0] = a;
  products[1] = b;
  products[2] = a * a;
  products[3] = b * b;
  products[4] = a * b;
}

u64 term_of(i64 m[kProducts], Weight k) {
  u64 x = f64_of_int(m[0]), y = f64_of_int(m[1]);
  u64 mean_xx = f64_product(x, x), mean_xy = f64_product(x, y), mean_yy = f64_product(y, y);
  u64 two = f64_of_int(i64(2));
  u64 luminance = f64_sum(f64_product(two, mean_xy), k.c1);
  u64 covariance = f64_difference(f64_product(f64_of_int(m[4]), k.w), mean_xy);
  u64 structure = f64_sum(k.c2, f64_product(two, covariance));
  u64 energies = f64_sum(f64_sum(mean_xx, mean_yy), k.c1);
  u64 variances = f64_difference(f64_product(f64_of_int(m[2]), k.w), mean_xx);
  variances = f64_sum(variances, f64_product(f64_of_int(m[3]), k.w));
  variances = f64_sum(f64_difference(variances, mean_yy), k.c2);
  return f64_quotient(f64_product(f64_product(k.w, luminance), structure),
      f64_product(energies, variances));
}
