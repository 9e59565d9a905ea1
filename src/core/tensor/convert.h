// SPDX-License-Identifier: Apache-2.0
// Elements as memory holds them, and their values: one load() and one store() for every dtype.
// Half types are plain structs of 16 bits, so that CPU and GPU need no vendor's header. All is
// branch-free: a loop over load() or store() becomes vector code for every SIMD target.
#pragma once

#include <cstdint>

#include "src/core/host_device.h"

namespace similis {

struct F16 {
  std::uint16_t bits;
};
struct BF16 {
  std::uint16_t bits;
};

// std::bit_cast, which GPU compilers take for a function of the CPU.
template <class To, class From> SIMILIS_HOST_DEVICE To bits_as(From from) {
  return __builtin_bit_cast(To, from);
}

template <class T> SIMILIS_HOST_DEVICE float load(T value) { return static_cast<float>(value); }

// Shifted into place an f16 is an f32 with an exponent 112 too small, subnormals included.
SIMILIS_HOST_DEVICE float load(F16 value) {
  const std::uint32_t magnitude = static_cast<std::uint32_t>(value.bits & 0x7fffu) << 13;
  const float finite = bits_as<float>(magnitude) * 0x1p112f;
  const std::uint32_t special = magnitude | 0x7f800000u;  // infinity, or NaN with its payload
  const bool is_special = magnitude >= 0x0f800000u;
  const std::uint32_t bits = is_special ? special : bits_as<std::uint32_t>(finite);
  return bits_as<float>(bits | static_cast<std::uint32_t>(value.bits & 0x8000u) << 16);
}

SIMILIS_HOST_DEVICE float load(BF16 value) {
  return bits_as<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

SIMILIS_HOST_DEVICE double load(double value) { return value; }
// An f32 holds no more than 24 bits.
SIMILIS_HOST_DEVICE double load(std::int32_t value) { return value; }

template <class T> SIMILIS_HOST_DEVICE void store(float value, T* out) {
  *out = static_cast<T>(value);
}

// To nearest, ties to even, overflow to infinity.
SIMILIS_HOST_DEVICE void store(float value, F16* out) {
  const std::uint32_t bits = bits_as<std::uint32_t>(value);
  const std::uint32_t sign = bits & 0x80000000u;
  const std::uint32_t magnitude = bits ^ sign;
  const bool is_nan = magnitude > 0x7f800000u;
  const bool overflows = magnitude >= 0x477ff000u;  // 65520, the first that rounds to 65536
  const bool is_small = magnitude < 0x38800000u;    // below the smallest normal f16, 2^-14
  // Adding 0.5 aligns a small number's last f16 bit with the last f32 bit; the hardware rounds.
  const std::uint32_t small =
      bits_as<std::uint32_t>(bits_as<float>(magnitude) + 0.5f) - 0x3f000000u;
  const std::uint32_t odd = (magnitude >> 13) & 1u;
  const std::uint32_t normal = (magnitude - 0x38000000u + 0xfffu + odd) >> 13;
  const std::uint32_t finite = is_small ? small : normal;
  const std::uint32_t rounded = overflows ? 0x7c00u : finite;
  out->bits = static_cast<std::uint16_t>((is_nan ? 0x7e00u : rounded) | sign >> 16);
}

// To nearest, ties to even.
SIMILIS_HOST_DEVICE void store(float value, BF16* out) {
  const std::uint32_t bits = bits_as<std::uint32_t>(value);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  out->bits = static_cast<std::uint16_t>(is_nan ? (bits >> 16 | 0x40u) : rounded);
}

template <class T> SIMILIS_HOST_DEVICE void store(double value, T* out) {
  store(static_cast<float>(value), out);
}
SIMILIS_HOST_DEVICE void store(double value, double* out) { *out = value; }
SIMILIS_HOST_DEVICE void store(double value, std::int32_t* out) {
  *out = static_cast<std::int32_t>(value);
}
SIMILIS_HOST_DEVICE void store(float value, double* out) { *out = value; }

}  // namespace similis
