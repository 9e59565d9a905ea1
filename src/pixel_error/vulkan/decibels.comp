#version 460
#extension GL_GOOGLE_include_directive : require
// SPDX-License-Identifier: Apache-2.0
// PSNR of mean squared errors, in decibels: 10·log10(peak / error), a thread each.
// Buffers: 0 errors: f64; 1 values: words of f32 or f64.
#include "src/gpu/glsl/prelude.glsl"
#include "src/gpu/glsl/soft_arithmetic.h"
#include "src/gpu/glsl/soft_functions.glsl"

layout(local_size_x = 64) in;
layout(push_constant) uniform Push {
  float one;
  int count;
  u64 peak;            // f64: data_range²
  int offset, is_f64;  // of the first value, in elements of its type
};
layout(std430, binding = 0) readonly buffer Errors { uvec2 errors[]; };
layout(std430, binding = 1) writeonly buffer Values { uint words[]; };

void main() {
  int i = int(gl_GlobalInvocationID.x);
  if (i >= count) return;
  u64 error = packUint2x32(errors[i]);
  u64 value = f64_nan();
  if (f64_is_zero(error)) {
    value = f64_bits(0x7ff00000u, 0u);  // infinite
  } else if (f64_is_finite(error)) {
    u64 ten_over_ln10 = f64_bits(0x40115f2cu, 0xed384f28u);
    value = soft_f64_product(ten_over_ln10, soft_f64_log(soft_f64_quotient(peak, error)));
  }
  int at = offset + i;
  if (is_f64 != 0) {
    words[2 * at] = uint(value);
    words[2 * at + 1] = uint(value >> 32);
  } else {
    words[at] = soft_f32_of_f64(value);
  }
}
