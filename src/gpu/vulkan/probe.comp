#version 460
#extension GL_GOOGLE_include_directive : require
// SPDX-License-Identifier: Apache-2.0
// Results of the operations that exact kernels are made of, for the CPU to compare bit by bit.
#include "src/gpu/glsl/prelude.glsl"
#include "src/gpu/glsl/soft_double.glsl"
#include "src/gpu/glsl/exact_float.glsl"

layout(local_size_x = 64) in;
layout(push_constant) uniform Push {
  float one;
  int count;
};
layout(std430, binding = 0) readonly buffer Floats { float floats[]; };     // 3 a case
layout(std430, binding = 1) readonly buffer Doubles { u64 doubles[]; };     // 3 a case
layout(std430, binding = 2) writeonly buffer Answers { float answers[]; };  // [answer][case]
layout(std430, binding = 3) writeonly buffer Sums { u64 sums[]; };          // [answer][case]

float product(float a, float b) { return a * b; }

void main() {
  int i = int(gl_GlobalInvocationID.x);
  if (i >= count) return;
  float a = floats[3 * i], b = floats[3 * i + 1], c = floats[3 * i + 2];
  answers[i] = fma(a, b, c);
  answers[count + i] = soft_fma(a, b, c);
  answers[2 * count + i] = quotient(a, b);
  // Shapes of source that drivers contract.
  answers[3 * count + i] = a * b + c;
  answers[4 * count + i] = a * b - c;
  answers[5 * count + i] = c - a * b;
  answers[6 * count + i] = a * b + b * c;
  float chosen = a;
  if ((i & 1) != 0) chosen = a * b;
  answers[7 * count + i] = chosen + c;
  answers[8 * count + i] = (0.5 * product(a, b)) * 14.0 + c;
  u64 x = doubles[3 * i], y = doubles[3 * i + 1], z = doubles[3 * i + 2];
  sums[i] = f64_sum(x, y);
  sums[count + i] = f64_product(x, y);
  sums[2 * count + i] = f64_quotient(x, y);
  sums[3 * count + i] = f64_sum(f64_product(x, y), z);
  sums[4 * count + i] = f64_of_int(i64(x) >> 3);
  sums[5 * count + i] = f64_of_float(a);
}
