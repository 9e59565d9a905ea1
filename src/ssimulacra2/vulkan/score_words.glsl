// SPDX-License-Identifier: Apache-2.0
// The words of score_steps.h in GLSL, in integers on every device.
#include "src/gpu/glsl/soft_double.glsl"

#define SIMILIS_HOST_DEVICE
#define SIMILIS_NUMBER(value, high, low) packUint2x32(uvec2(low, high))
#define f64 u64
#define f64_fused soft_f64_fma
#define f64_root soft_f64_root
#define f64_floor_to_int soft_f64_floor_to_int
u64 f64_bits(u64 a) { return a; }
u64 f64_of_bits(u64 a) { return a; }
#include "src/ssimulacra2/score_steps.h"
