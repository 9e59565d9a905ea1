// SPDX-License-Identifier: Apache-2.0
// Elements of tensors in buffers of 32-bit words. A dtype is a DType of the library. Include it
// after prelude.glsl.
const int kU8 = 0, kF16 = 2, kBf16 = 3, kF32 = 4;

int word_of(int dtype, int index) {
  return dtype == kU8 ? index >> 2 : dtype == kF32 ? index : index >> 1;
}

// The element from the word that holds it.
float element_of(int dtype, uint word, int index) {
  if (dtype == kF32) return float_of(word);
  if (dtype == kU8) return float(word >> (8 * (index & 3)) & 255u);
  uint half_word = word >> (16 * (index & 1)) & 65535u;
  return dtype == kF16 ? unpackHalf2x16(half_word).x : float_of(half_word << 16);
}

// Rounds to f16, to nearest even. The language's packHalf2x16 rounds as the driver likes.
uint f16_bits(float value) {
  uint bits = bits_of(value), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u;
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;
  if (magnitude < 0x33000000u) return sign;
  bool is_subnormal = magnitude < 0x38800000u;
  uint shift = is_subnormal ? 126u - (magnitude >> 23) : 13u;
  uint mantissa = is_subnormal ? (magnitude & 0x7fffffu) | 0x800000u : magnitude - 0x38000000u;
  return sign | (mantissa + (1u << (shift - 1u)) - 1u + (mantissa >> shift & 1u)) >> shift;
}

// The same to bf16.
uint bf16_bits(float value) {
  uint bits = bits_of(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return bits >> 16 | 0x40u;
  return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

// Writes an element of f32, f16 or bf16. Two threads may write the halves of one word at once.
#define STORE_ELEMENT(words, dtype, index, value)                                         \
  {                                                                                       \
    if ((dtype) == kF32) {                                                                \
      words[index] = bits_of(value);                                                      \
    } else {                                                                              \
      uint half_bits = (dtype) == kF16 ? f16_bits(value) : bf16_bits(value);              \
      uint at_bit = 16u * uint((index) & 1);                                              \
      atomicAnd(words[(index) >> 1], 0xffff0000u >> at_bit);                              \
      atomicOr(words[(index) >> 1], half_bits << at_bit);                                 \
    }                                                                                     \
  }
