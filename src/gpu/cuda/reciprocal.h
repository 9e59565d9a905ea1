// SPDX-License-Identifier: Apache-2.0
// Approximate reciprocals in kernels: one instruction on CUDA, where an IEEE division takes about
// ten and a branch; a division elsewhere. Empty in a file that is not compiled for a GPU.
#pragma once

#if defined(__CUDACC__) || defined(__HIPCC__)

#include "src/gpu/cuda/vendor.h"

namespace similis::gpu {

/// 1 / value to 1 unit in the last place; subnormal numbers count as 0.
__device__ __forceinline__ float approximate_reciprocal(float value) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
#else
  return 1 / value;
#endif
}

/// The same to 20 bits, a start for Newton's method.
__device__ __forceinline__ double approximate_reciprocal(double value) {
#if defined(__CUDA_ARCH__)
  double result;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(result) : "d"(value));
  return result;
#else
  return 1 / value;
#endif
}

}  // namespace similis::gpu

#endif
