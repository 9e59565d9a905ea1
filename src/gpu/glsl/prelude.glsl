// SPDX-License-Identifier: Apache-2.0
// The beginning of every kernel: 64-bit integers, and the words of soft_arithmetic.h.
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_scalar_block_layout : require

#define u64 uint64_t
#define i64 int64_t
#define FUNCTION
#define OUT(type) out type
#define INOUT(type) inout type

uint bits_of(float value) { return floatBitsToUint(value); }
float float_of(uint bits) { return uintBitsToFloat(bits); }

int high_bit(u64 value) {
  uvec2 words = unpackUint2x32(value);
  return words.y != 0u ? 32 + findMSB(words.y) : findMSB(words.x);
}

void product_128(u64 a, u64 b, out u64 high, out u64 low) {
  uvec2 x = unpackUint2x32(a), y = unpackUint2x32(b);
  uint high0, low0, high1, low1, high2, low2, high3, low3;
  umulExtended(x.x, y.x, high0, low0);
  umulExtended(x.x, y.y, high1, low1);
  umulExtended(x.y, y.x, high2, low2);
  umulExtended(x.y, y.y, high3, low3);
  u64 middle = u64(high0) + u64(low1) + u64(low2);
  low = (middle << 32) | u64(low0);
  high = packUint2x32(uvec2(low3, high3)) + u64(high1) + u64(high2) + (middle >> 32);
}
