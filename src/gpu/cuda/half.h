// SPDX-License-Identifier: Apache-2.0
// Half types and f32 in kernels: one instruction where the hardware has it, convert.h's arithmetic
// elsewhere.
#pragma once

#include <cstdint>
#include <type_traits>

#include "src/core/tensor/convert.h"
#include "src/gpu/cuda/vendor.h"

namespace similis::gpu {

template <class T> __device__ __forceinline__ float to_float(T value) { return load(value); }

// A byte becomes the last bits of an f32 of 2²³: these instructions run at full rate, a conversion
// does not.
__device__ __forceinline__ float to_float(std::uint8_t value) {
  return bits_as<float>(0x4b000000u | value) - 0x1p23f;
}

/// Rounds to nearest.
template <class T> __device__ __forceinline__ T rounded(float value) {
  T result;
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<T, F16>) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
    return result;
  }
  if constexpr (std::is_same_v<T, BF16>) {
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
    return result;
  }
#endif
  store(value, &result);
  return result;
}

/// Rounds two neighbours at once; the first goes to the lower bits.
template <class T> __device__ __forceinline__ unsigned rounded_pair(float first, float second) {
#if defined(__CUDA_ARCH__)
  unsigned result;
  if constexpr (std::is_same_v<T, F16>) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(second), "f"(first));
    return result;
  }
  if constexpr (std::is_same_v<T, BF16>) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(second), "f"(first));
    return result;
  }
#endif
  return rounded<T>(first).bits | static_cast<unsigned>(rounded<T>(second).bits) << 16;
}

#if defined(__CUDA_ARCH__)
__device__ __forceinline__ float to_float(F16 value) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
}
#endif

}  // namespace similis::gpu
