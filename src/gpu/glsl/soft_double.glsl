// SPDX-License-Identifier: Apache-2.0
// f64 as its bits, with IEEE's results: by the device's doubles in the module that the probe chose
// for devices whose doubles are exact (SIMILIS_F64), else in integers.
#include "src/gpu/glsl/soft_arithmetic.h"

#ifdef SIMILIS_F64
double double_of(u64 bits) { return packDouble2x32(unpackUint2x32(bits)); }
u64 bits_of(double value) { return packUint2x32(unpackDouble2x32(value)); }
u64 f64_sum(u64 a, u64 b) { return bits_of(double_of(a) + double_of(b)); }
u64 f64_product(u64 a, u64 b) { return bits_of(double_of(a) * double_of(b)); }
u64 f64_quotient(u64 a, u64 b) { return bits_of(double_of(a) / double_of(b)); }
u64 f64_of_int(i64 value) { return bits_of(double(value)); }
u64 f64_of_float(float value) { return bits_of(double(value)); }
#else
#define f64_sum soft_f64_sum
#define f64_product soft_f64_product
#define f64_quotient soft_f64_quotient
#define f64_of_int soft_f64_of_int
#define f64_of_float soft_f64_of_float
#endif

u64 f64_negative(u64 a) { return a ^ (U64(1) << 63); }
u64 f64_difference(u64 a, u64 b) { return f64_sum(a, f64_negative(b)); }
bool f64_less(u64 a, u64 b) { return soft_f64_less(a, b); }
