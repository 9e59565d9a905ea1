#version 460
#extension GL_GOOGLE_include_directive : require
// SPDX-License-Identifier: Apache-2.0
// Terms of samples of up to 16 bits: sums of 64 bits, and every step of the formula is rounded as
// integer/formula.h rounds Moments.
#include "src/gpu/glsl/prelude.glsl"
#include "src/gpu/glsl/soft_double.glsl"

#define SUM i64
const int kProducts = 5;      // x, y, x², y², xy
#define WINDOW uint[kWindow]  // samples, y in the upper halves
#include "src/libvmaf_ssim/vulkan/terms.glsl"

void clear(out uint window[kWindow]) {
  [[unroll]] for (int i = 0; i < kWindow; ++i) window[i] = 0u;
}

void add_row(inout uint window[kWindow], int x, int y, bool is_sample) {
  [[unroll]] for (int i = 0; i < kWindow - 1; ++i) window[i] = window[i + 1];
  window[kWindow - 1] = uint(x) | uint(y) << 16;
}

// Running sums of 64 bits would take 90 registers. A sample times a tap has at most 23 bits, so that
// each product is one of 32 bits by 32 that is added to 64.
void sums_of(uint window[kWindow], out i64 sums[kProducts]) {
  uint sum_x = 0u, sum_y = 0u;
  u64 sum_xx = U64(0), sum_yy = U64(0), sum_xy = U64(0);
  [[unroll]] for (int i = 0; i < kWindow; ++i) {
    uint x = window[i] & 65535u, y = window[i] >> 16;
    uint tap_x = uint(kTaps[i]) * x, tap_y = uint(kTaps[i]) * y;
    sum_x += tap_x;
    sum_y += tap_y;
    sum_xx += u64(tap_x) * u64(x);
    sum_yy += u64(tap_y) * u64(y);
    sum_xy += u64(tap_x) * u64(y);
  }
  sums[0] = i64(sum_x);
  sums[1] = i64(sum_y);
  sums[2] = i64(sum_xx);
  sums[3] = i64(sum_yy);
  sums[4] = i64(sum_xy);
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
