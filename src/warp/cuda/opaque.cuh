// SPDX-License-Identifier: Apache-2.0
// Values whose origin the compiler is not to see.
#pragma once

#include <type_traits>

#include "src/warp/cuda/fast_path.h"

namespace similis::warp_internal {

// Hides the origin of a pointer or an offset: else the compiler adds up in 64 bits, at every use,
// the numbers that both are made of, and a voxel takes 180 instructions instead of 105.
template <class T> __device__ __forceinline__ T opaque(T address) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(T) == 8) {
    asm("" : "+l"(address));
  } else {
    asm("" : "+r"(address));
  }
#endif
  return address;
}

// Hides the origin of a number, so that results made of it are not kept in registers until their
// next use.
template <class T> __device__ __forceinline__ T recomputed(T value) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_integral_v<T>) {
    asm volatile("" : "+r"(value));
  } else if constexpr (sizeof(T) == 8) {
    asm volatile("" : "+d"(value));
  } else {
    asm volatile("" : "+f"(value));
  }
#endif
  return value;
}

}  // namespace similis::warp_internal
