#version 460
#extension GL_GOOGLE_include_directive : require
// SPDX-License-Identifier: Apache-2.0
// Results from sums over tiles, in f64 and in a fixed order: a workgroup a result.
#include "src/gpu/glsl/prelude.glsl"
#include "src/gpu/glsl/soft_arithmetic.h"
#include "src/gpu/glsl/soft_functions.glsl"

const int kThreads = 128;

layout(local_size_x = kThreads) in;
layout(push_constant) uniform Push {
  float one;
  int count;           // sums of a result
  u64 bias, factor;    // f64: a result is bias + factor·(its sums' sum)
  int offset, is_f64;  // of the first result, in elements of its type
};
layout(std430, binding = 0) readonly buffer Sums { float sums[]; };
layout(std430, binding = 1) writeonly buffer Results { uint words[]; };

shared u64 partial_sums[kThreads];
shared uint any_not_finite;

void main() {
  int t = int(gl_LocalInvocationID.x), result = int(gl_WorkGroupID.x);
  if (t == 0) any_not_finite = 0u;
  barrier();
  float high = 0.0, low = 0.0;  // the sum and what f32 has lost of it
  for (int i = t; i < count; i += kThreads) {
    float value = sums[result * count + i];
    if ((bits_of(value) & 0x7f800000u) == 0x7f800000u) atomicOr(any_not_finite, 1u);
    float sum = high + value, added = sum - high;
    low += (high - (sum - added)) + (value - added);
    high = sum;
  }
  partial_sums[t] = soft_f64_sum(soft_f64_of_float(high), soft_f64_of_float(low));
  barrier();
  for (int half_count = kThreads / 2; half_count > 0; half_count /= 2) {
    if (t < half_count)
      partial_sums[t] = soft_f64_sum(partial_sums[t], partial_sums[t + half_count]);
    barrier();
  }
  if (t != 0) return;
  u64 value = soft_f64_sum(bias, soft_f64_product(factor, partial_sums[0]));
  if (any_not_finite != 0u) value = f64_nan();
  int at = offset + result;
  if (is_f64 != 0) {
    words[2 * at] = uint(value);
    words[2 * at + 1] = uint(value >> 32);
  } else {
    words[at] = soft_f32_of_f64(value);
  }
}
