// SPDX-License-Identifier: Apache-2.0
// Sums of 64-bit integers over the threads of a subgroup and of a block. Order does not matter.
#pragma once

#include "src/core/tensor/convert.h"
#include "src/gpu/cuda/vendor.h"
#include "src/vmaf/cuda/images.h"

namespace similis::vmaf_internal {

constexpr int kSumsAtOnce = 8;

/// The value of another lane of the subgroup.
__device__ inline GpuSum sum_of_lane(GpuSum value, int lane) {
  return bits_as<GpuSum>(gpu::value_of(bits_as<double>(value), lane));
}

/// Adds eight numbers up over the subgroup: lane l gets the sum of number l / 4. Lanes exchange
/// half of the numbers that they still have, so that it takes 9 exchanges and not 40.
__device__ inline GpuSum sum_over_subgroup(GpuSum (&values)[kSumsAtOnce]) {
  const int lane = static_cast<int>(threadIdx.x) % gpu::kSubgroup;
#pragma unroll
  for (int count = kSumsAtOnce / 2; count > 0; count /= 2) {
    const int distance = 4 * count;
    const bool is_upper = (lane & distance) != 0;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const GpuSum own = is_upper ? values[i + count] : values[i];
      const GpuSum other = is_upper ? values[i] : values[i + count];
      values[i] = own + sum_of_lane(other, lane ^ distance);
    }
  }
  GpuSum sum = values[0];
  sum += sum_of_lane(sum, lane ^ 2);
  sum += sum_of_lane(sum, lane ^ 1);
  return sum;
}

/// Adds eight numbers of all threads of the block to `to`; all threads call it. `room` is shared.
template <int threads>
__device__ void add_over_block(GpuSum (&values)[kSumsAtOnce], GpuSum* room, GpuSum* to) {
  constexpr int subgroups = threads / gpu::kSubgroup;
  const int t = static_cast<int>(threadIdx.x);
  const GpuSum sum = sum_over_subgroup(values);
  if (t % 4 == 0) room[t / gpu::kSubgroup * kSumsAtOnce + t % gpu::kSubgroup / 4] = sum;
  __syncthreads();
  if (t >= kSumsAtOnce) return;
  GpuSum all = 0;
  for (int i = 0; i < subgroups; ++i) all += room[i * kSumsAtOnce + t];
  if (all != 0) atomicAdd(to + t, all);
}

}  // namespace similis::vmaf_internal
