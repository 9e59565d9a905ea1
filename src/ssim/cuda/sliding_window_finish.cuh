// SPDX-License-Identifier: Apache-2.0
// Adds the sums of segments, and turns them into values in the last block.
#pragma once

#include "src/ssim/cuda/sliding_window.h"

#if !defined(__HIPCC__)

namespace similis::ssim_internal::sliding_window {

// Returns the block whose share holds a pair of rows. It does not divide: where threads may
// diverge, 64-bit divisions cost the whole kernel the knowledge that its conditions are uniform
// (nvcc 13.0).
__device__ inline std::int64_t block_of(
    std::int64_t pair, std::int64_t blocks, std::int64_t pairs, double blocks_a_pair) {
  // Block b begins at pair pairs·b / blocks.
  auto b = static_cast<std::int64_t>(static_cast<double>(pair) * blocks_a_pair);
  if (pairs * b >= (pair + 1) * blocks) --b;
  if (pairs * (b + 1) < (pair + 1) * blocks) ++b;
  return b;
}

// Adds the segments of planes that follow one another with `lanes` threads, of which this is number
// `lane`; each gets its part of the sum.
__device__ inline Partial segments_sum(const Partial* partials, std::int64_t blocks,
    double blocks_a_pair, std::int64_t pairs, std::int64_t first_strip, std::int64_t strips,
    std::int64_t pairs_a_strip, int lane, int lanes) {
  // Block b's segment of strip s has the number b + s.
  const std::int64_t last_strip = first_strip + strips - 1;
  const std::int64_t first =
      block_of(first_strip * pairs_a_strip, blocks, pairs, blocks_a_pair) + first_strip;
  const std::int64_t last =
      block_of((last_strip + 1) * pairs_a_strip - 1, blocks, pairs, blocks_a_pair) + last_strip;
  Partial sum = {0, 0};
#pragma unroll 8
  for (std::int64_t i = first + lane; i <= last; i += lanes) {
    const double2 part = __ldcg(reinterpret_cast<const double2*>(partials + i));
    sum.term += part.x;
    sum.l1 += part.y;
  }
  return sum;
}

// Returns true, in all threads, to the block that arrives last.
__device__ __forceinline__ bool arrives_last(unsigned* arrived) {
  __shared__ bool is_last;
  if (threadIdx.x == 0) {
    __threadfence();  // this thread wrote all that the block added up
    is_last = atomicAdd(arrived, 1u) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  return is_last;
}

// The sums of a launch's segments in memory.
struct Segments {
  const Partial* partials;
  std::int64_t blocks;
  double blocks_a_pair;
  std::int64_t pairs, pairs_a_strip;
  int strips;
};

// Writes the values with one block. add(sum, plane, planes, lane, lanes) adds to a thread's sum its
// part of what else these planes have.
template <int threads, class Add>
__device__ __forceinline__ void write_groups(
    const SlidingWindowFinish& f, const Segments& s, double* words, const Add& add) {
  constexpr int kWarps = threads / gpu::kWarp;
  const int t = static_cast<int>(threadIdx.x);
  const std::int64_t strips = f.planes_each * s.strips;
  const bool together = f.groups < kWarps;  // the whole block takes each group, or a warp does
  const int lanes = together ? threads : gpu::kWarp;
  for (std::int64_t g = together ? 0 : t / gpu::kWarp; g < f.groups; g += together ? 1 : kWarps) {
    Partial sum = segments_sum(s.partials, s.blocks, s.blocks_a_pair, s.pairs, g * strips, strips,
        s.pairs_a_strip, t % lanes, lanes);
    add(sum, g * f.planes_each, f.planes_each, t % lanes, lanes);
    if (together) {
      sum.term = gpu::block_sum_warps<threads>(sum.term, words);
      sum.l1 = gpu::block_sum_warps<threads>(sum.l1, words);
    } else {
      sum.term = gpu::subgroup_sum(sum.term);
      sum.l1 = gpu::subgroup_sum(sum.l1);
    }
    if (t % lanes == 0) {
      gpu::store_element(f.value, f.dtype, g, f.bias + f.term * sum.term + f.l1 * sum.l1);
    }
  }
}

// Writes the values, in the block that arrives last.
template <class P> __device__ void finish(const SlidingWindow& m, double* words) {
  if (!arrives_last(m.finish.arrived)) return;
  write_groups<P::kThreads>(m.finish,
      {m.partials, gridDim.x, m.blocks_a_pair, m.pairs(), m.pairs_a_strip(), m.strips}, words,
      [](Partial&, std::int64_t, std::int64_t, int, int) {});
}

}  // namespace similis::ssim_internal::sliding_window

#endif
