#version 460
#extension GL_GOOGLE_include_directive : require
// SPDX-License-Identifier: Apache-2.0
// MS-SSIM of each plane from the mean dissimilarities of its levels (formula.h), reduced, and the
// slope of Σ upstream·value by each mean. In f64 by integers: these are few numbers, and products
// of powers near 1 need their digits. A workgroup a result.
// Buffers: 0 means: f64, [level][plane]; 1 weights: f64, [level]; 2 upstream: words;
//   3 slopes: f32, [level][plane]; 4 values: words of f32 or f64.
#include "src/gpu/glsl/prelude.glsl"
#include "src/gpu/glsl/soft_arithmetic.h"
#include "src/gpu/glsl/soft_functions.glsl"
#include "src/gpu/glsl/elements.glsl"

const int kThreads = 32;

layout(local_size_x = kThreads) in;
layout(constant_id = 0) const int kUpstreamDtype = -1;  // -1: there is none, each is 1
layout(push_constant) uniform Push {
  float one;
  int planes, planes_each, levels;
  u64 bias, term_weight, share;  // f64: a result is share·Σ (bias + term_weight·(1 - MS-SSIM))
  int value_offset, is_f64, has_value;
  int upstream_offset, upstream_strides[2], channels;
};
layout(std430, binding = 0) readonly buffer Means { uvec2 means[]; };
layout(std430, binding = 1) readonly buffer Weights { uvec2 weights[]; };
layout(std430, binding = 2) readonly buffer Upstream { uint words_upstream[]; };
layout(std430, binding = 3) writeonly buffer Slopes { float slopes[]; };
layout(std430, binding = 4) writeonly buffer Values { uint words[]; };

shared u64 partial_sums[kThreads];
shared uint any_not_finite;

u64 mean_of(int level, int plane) { return packUint2x32(means[level * planes + plane]); }
u64 weight_of(int level) { return packUint2x32(weights[level]); }

bool is_at_least_1(u64 a) { return f64_sign(a) == U64(0) && a >= f64_whole(1); }

void main() {
  int t = int(gl_LocalInvocationID.x), result = int(gl_WorkGroupID.x);
  if (t == 0) any_not_finite = 0u;
  barrier();
  u64 sum = U64(0);
  for (int i = t; i < planes_each; i += kThreads) {
    int plane = result * planes_each + i;
    u64 logarithm = U64(0);
    bool is_zero = false, is_finite = true;
    for (int level = 0; level < levels; ++level) {
      u64 mean = mean_of(level, plane), weight = weight_of(level);
      if (f64_is_zero(weight)) continue;
      if (!f64_is_finite(mean)) {
        is_finite = false;
      } else if (is_at_least_1(mean)) {
        is_zero = true;
      } else {
        logarithm = soft_f64_sum(logarithm, soft_f64_product(weight, soft_f64_log_of_rest(mean)));
      }
    }
    u64 value = is_zero ? f64_whole(1) : f64_negative(soft_f64_exp_minus_1(logarithm));
    sum = soft_f64_sum(sum, soft_f64_sum(bias, soft_f64_product(term_weight, value)));
    if (!is_finite && !is_zero) atomicOr(any_not_finite, 1u);
    u64 factor = soft_f64_product(share, term_weight);
    if (kUpstreamDtype >= 0) {
      int at = upstream_offset + plane / channels * upstream_strides[0] +
               plane % channels * upstream_strides[1];
      factor = soft_f64_product(factor, soft_f64_of_float(element_of(
          kUpstreamDtype, words_upstream[word_of(kUpstreamDtype, at)], at)));
    }
    u64 rest = soft_f64_product(factor, soft_f64_difference(f64_whole(1), value));
    for (int level = 0; level < levels; ++level) {
      u64 weight = weight_of(level), slope = U64(0);
      if (!is_zero && !f64_is_zero(weight)) {
        u64 left = soft_f64_difference(f64_whole(1), mean_of(level, plane));
        slope = is_finite ? soft_f64_quotient(soft_f64_product(weight, rest), left) : f64_nan();
      }
      slopes[level * planes + plane] = float_of(soft_f32_of_f64(slope));
    }
  }
  partial_sums[t] = sum;
  barrier();
  for (int half_count = kThreads / 2; half_count > 0; half_count /= 2) {
    if (t < half_count)
      partial_sums[t] = soft_f64_sum(partial_sums[t], partial_sums[t + half_count]);
    barrier();
  }
  if (t != 0 || has_value == 0) return;
  u64 total = any_not_finite != 0u ? f64_nan() : soft_f64_product(share, partial_sums[0]);
  int at = value_offset + result;
  if (is_f64 != 0) {
    words[2 * at] = uint(total);
    words[2 * at + 1] = uint(total >> 32);
  } else {
    words[at] = soft_f32_of_f64(total);
  }
}
