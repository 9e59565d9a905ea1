// SPDX-License-Identifier: Apache-2.0
// Results from partial sums, by a kernel of its own or by some blocks of another one.
#pragma once

#include "src/gpu/cuda/block_sum_of.h"
#include "src/ssim/cuda/plan.h"

namespace similis::ssim_internal {

/// Each result is bias + term·Σ of `each` partial sums. With `sums` the weight of each follows the
/// results.
struct Finish {
  const double* partials = nullptr;
  std::int64_t groups = 0, each = 0;
  double bias = 0, term = 0, weight = 0;
  void* value = nullptr;
  DType dtype = DType::f32;
  bool sums = false;
};
/// The Finish for partial sums of 1 - SSIM, [planes][slots], without masks and without |x - y|.
Finish finish_of(const CudaPlan& plan, const double* partials, std::int64_t slots);

/// Writes the results `first`, first + step, …; all threads of the block call it.
template <int threads>
__device__ __forceinline__ void finish(const Finish& f, std::int64_t first, std::int64_t step) {
  for (std::int64_t g = first; g < f.groups; g += step) {
    const double total = gpu::block_sum_of<threads>(
        f.each, [&](std::int64_t i) { return f.partials[g * f.each + i]; });
    if (threadIdx.x == 0) {
      gpu::store_element(f.value, f.dtype, g, f.bias + f.term * total);
      if (f.sums) gpu::store_element(f.value, f.dtype, f.groups + g, f.weight);
    }
    __syncthreads();
  }
}

}  // namespace similis::ssim_internal
