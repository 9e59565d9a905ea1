// SPDX-License-Identifier: Apache-2.0
// Smoothing on the GPU for registration, which has memory of its own, must not wait for the host,
// and needs the largest vector of the result.
#pragma once

#include "similis/smooth.hpp"
#if defined(__CUDACC__) || defined(__HIPCC__)
#include "src/gpu/cuda/vendor.h"
#endif

namespace similis::smooth_internal {

/// Kernels do nothing where *limit is neither 0 nor `number` or more.
struct Gate {
  const int* limit = nullptr;  ///< on the device; null: there is none
  int number = 0;
  unsigned* largest =
      nullptr;  ///< becomes the bits of the largest squared vector, if those are more

#if defined(__CUDACC__) || defined(__HIPCC__)
  __device__ bool is_open() const { return limit == nullptr || *limit == 0 || number <= *limit; }

  /// Every thread of a block calls it. `most`: the bits of the largest squared vector that the
  /// thread has; the order of bits is that of squares, and NaN is above all.
  __device__ __forceinline__ void raise_largest(unsigned most) const {
    __shared__ unsigned of_block;
    if (threadIdx.x == 0) of_block = 0;
    __syncthreads();
    atomicMax(&of_block, most);
    __syncthreads();
    if (threadIdx.x == 0) atomicMax(largest, of_block);
  }
#endif
};

/// The largest radius that smooth_field() takes.
inline constexpr int kMostRadius = 32;

/// Smooths a dense f32 field [1,Z,Y,X,3] in place, by `work` of its size. The radius of each axis
/// is at most kMostRadius.
void smooth_field(const TensorView& field, const TensorView& work, const SmoothOptions& options,
    const Gate& gate, const Execution& exec);

}  // namespace similis::smooth_internal
