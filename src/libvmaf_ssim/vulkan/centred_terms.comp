#version 460
#extension GL_GOOGLE_include_directive : require
// SPDX-License-Identifier: Apache-2.0
// Terms of samples of up to 10 bits: sums about the middle of the range fit 32 bits down a column,
// and all that a term is made of is a whole number below 2^53 (integer/formula.h, CentredMoments).
#include "src/gpu/glsl/prelude.glsl"
#include "src/gpu/glsl/soft_double.glsl"

#define SUM int
const int kProducts = 4;                // x, y, x² + y² - middle², xy
#define WINDOW int[kProducts][kWindow]  // running sums, the oldest of which is complete
#include "src/libvmaf_ssim/vulkan/terms.glsl"

void clear(out int window[kProducts][kWindow]) {
  [[unroll]] for (int p = 0; p < kProducts; ++p) {
    [[unroll]] for (int i = 0; i < kWindow; ++i) window[p][i] = 0;
  }
}

void add_row(inout int window[kProducts][kWindow], int x, int y, bool is_sample) {
  int middle = 1 << (bit_depth - 1), a = x - middle, b = y - middle;
  int products[kProducts] = int[kProducts](a, b, a * a + b * b - middle * middle, a * b);
  [[unroll]] for (int p = 0; p < kProducts; ++p) {
    int product = is_sample ? products[p] : 0;
    [[unroll]] for (int i = 0; i < kWindow - 1; ++i) {
      window[p][i] = window[p][i + 1] + product * kTaps[i];
    }
    window[p][kWindow - 1] = product * kTaps[kWindow - 1];
  }
}

void sums_of(int window[kProducts][kWindow], out int sums[kProducts]) {
  [[unroll]] for (int p = 0; p < kProducts; ++p) sums[p] = window[p][0];
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
