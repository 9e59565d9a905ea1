// SPDX-License-Identifier: Apache-2.0
// Results from partial sums. The gradient's kernel writes them too, since the sums are complete
// before it begins: a launch less.
#pragma once

#include "src/lncc/cuda/plan.h"

namespace similis::lncc_internal {

/// Number of threads that add up sums. Every block that does has as many, so that the order of
/// additions does not depend on the kernel.
constexpr int kAdders = 96;

/// Writes the results `first`, first + gridDim.x, …; all threads of the block call it. `room` is
/// shared memory for a number of each subgroup of the adders.
__device__ __forceinline__ void write_values(const Values& v, std::int64_t first, double* room) {
  const auto thread = static_cast<int>(threadIdx.x);
  const std::int64_t count = v.groups.planes_each * v.slots;
  for (std::int64_t group = first; group < v.groups.count; group += gridDim.x) {
    __syncthreads();
    if (thread < kAdders) {
      const double* const partials = v.partials + group * count;
      double sum = 0;
#pragma unroll 4
      for (std::int64_t i = thread; i < count; i += kAdders) sum += partials[i];
      sum = gpu::subgroup_sum(sum);
      if (thread % gpu::kSubgroup == 0) room[thread / gpu::kSubgroup] = sum;
    }
    __syncthreads();
    if (thread != 0) continue;
    double total = 0;
    for (int i = 0; i < kAdders / gpu::kSubgroup; ++i) total += room[i];
    const double unit = v.units != nullptr ? v.units[group] : v.unit;
    gpu::store_element(v.value, v.dtype, group, total * unit);
  }
}

}  // namespace similis::lncc_internal
