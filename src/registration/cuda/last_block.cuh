// SPDX-License-Identifier: Apache-2.0
// The sums of all blocks of a launch, by the block that ends last, in the blocks' order.
#pragma once

#include <cmath>

#include "src/gpu/cuda/vendor.h"
#include "src/registration/cuda/fused.h"

namespace similis::registration_internal::cuda {
namespace {

// True in the last block, whose thread 0 then has in `all` the sums of every thread's numbers and,
// behind them, the largest of `most`. `partials` takes count + 1 numbers a block; the ticket, 0
// before, is 0 again.
template <int count>
__device__ __forceinline__ bool is_last_block(const double (&sums)[count], double most,
    double* partials, unsigned* ticket, double (&all)[count + 1]) {
  constexpr int kWarps = kTile / gpu::kSubgroup;
  __shared__ double of_warps[count][kWarps];
  __shared__ double largest[kWarps];
  __shared__ bool is_last;
  const unsigned t = threadIdx.x;
  const auto block_totals = [&](const double(&own)[count], double own_most, double* to) {
    __syncthreads();
#pragma unroll
    for (int k = 0; k < count; ++k) {
      const double sum = gpu::subgroup_sum(own[k]);
      if (t % gpu::kSubgroup == 0) of_warps[k][t / gpu::kSubgroup] = sum;
    }
    const int lane = static_cast<int>(t % gpu::kSubgroup);
    for (int distance = gpu::kSubgroup / 2; distance > 0; distance /= 2) {
      own_most = fmax(own_most, gpu::value_of(own_most, lane ^ distance));
    }
    if (lane == 0) largest[t / gpu::kSubgroup] = own_most;
    __syncthreads();
    if (t < count) {
      double sum = 0;
      for (int warp = 0; warp < kWarps; ++warp) sum += of_warps[t][warp];
      to[t] = sum;
    }
    if (t == count) {
      double most_of_all = largest[0];
      for (int warp = 1; warp < kWarps; ++warp) most_of_all = fmax(most_of_all, largest[warp]);
      to[t] = most_of_all;
    }
  };
  double* const own = partials + std::int64_t{blockIdx.x} * (count + 1);
  block_totals(sums, most, own);
  __threadfence();
  __syncthreads();
  if (t == 0) is_last = atomicAdd(ticket, 1u) == gridDim.x - 1;
  __syncthreads();
  if (!is_last) return false;
  __threadfence();
  double added[count] = {};
  double added_most = -INFINITY;
  for (unsigned block = t; block < gridDim.x; block += kTile) {
    // Other blocks wrote them: no cache of this multiprocessor may answer.
    const volatile double* const of_block = partials + std::int64_t{block} * (count + 1);
#pragma unroll
    for (int k = 0; k < count; ++k) added[k] += of_block[k];
    added_most = fmax(added_most, of_block[count]);
  }
  __shared__ double totals[count + 1];
  block_totals(added, added_most, totals);
  __syncthreads();
  if (t == 0) {
    for (int k = 0; k <= count; ++k) all[k] = totals[k];
    *ticket = 0;
  }
  return true;
}

}  // namespace
}  // namespace similis::registration_internal::cuda
