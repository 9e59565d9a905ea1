// SPDX-License-Identifier: Apache-2.0
// The words of steps.h in GLSL.
#ifndef SIMILIS_HAS_DOUBLES
#include "src/gpu/glsl/soft_double.glsl"
#endif
#include "src/gpu/glsl/exact_float.glsl"

#define SIMILIS_HOST_DEVICE
#define SIMILIS_IN(type) type
#define SIMILIS_INOUT(type) inout type
#define SIMILIS_CONSTANT const
#define f64 u64

float magnitude(float a) { return float_of(bits_of(a) & 0x7fffffffu); }

// Numbers that quotient() does not take go through f64: 53 bits are enough for 24 to be right.
float divided(float a, float b) {
  const float least = 8.67361738e-19, most = 1.15292150e18;  // 2^-60, 2^60
  if (magnitude(a) < most && magnitude(b) > least && magnitude(b) < most) return quotient(a, b);
  u64 wide = soft_f64_quotient(soft_f64_of_float(a), soft_f64_of_float(b));
  return float_of(soft_f32_of_f64(wide));
}

#include "src/ssimulacra2/constants.h"
#include "src/ssimulacra2/steps.h"
