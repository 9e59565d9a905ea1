// SPDX-License-Identifier: Apache-2.0
// The sum of numbers in memory by one block, as the last step of a reduction adds partial sums.
#pragma once

#include "src/gpu/cuda/vendor.h"

namespace similis::gpu {

/// Σ value_at(i), i < count, in an order that depends on `threads` and `count` alone; every thread
/// of the block calls it, and thread 0 gets the sum. A barrier comes before the next call.
template <int threads, class Count, class ValueAt>
__device__ __forceinline__ double block_sum_of(Count count, const ValueAt& value_at) {
  double sum = 0;
  for (Count i = static_cast<Count>(threadIdx.x); i < count; i += threads) sum += value_at(i);
  return block_sum<threads>(sum);
}

}  // namespace similis::gpu
