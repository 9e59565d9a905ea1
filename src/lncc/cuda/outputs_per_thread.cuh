// SPDX-License-Identifier: Apache-2.0
// Parts of the two sliding window kernels: each thread has kOutputs windows, which begin one line
// after the other, and a block adds up its sums.
#pragma once

#include "src/lncc/cuda/fast_path.h"

namespace similis::lncc_internal {

/// Adds to each of a thread's windows the sum over its lines: lines i to i + window - 1 for window
/// i. add(sums, line) adds a line to sums. A window is the sum before its end less the sum before
/// its beginning, so that it costs the same however wide it is.
template <class Sums, class Add>
__device__ __forceinline__ void add_to_windows(
    Sums (&windows)[kOutputs], int window, const Add& add) {
  Sums before = {};
#pragma unroll
  for (int i = 1; i < kOutputs; ++i) {
    add(before, i - 1);
    windows[i] -= before;
  }
  int line = kOutputs - 1;
  if (window < line) {  // the first window ends among these lines: add them again
    before = {};
    line = 0;
  }
  for (; line < window; ++line) add(before, line);
  windows[0] += before;
#pragma unroll
  for (int i = 1; i < kOutputs; ++i) {
    add(before, window + i - 1);
    windows[i] += before;
  }
}

/// Does the same for narrow windows, the first of which ends before the last begins.
template <int window, class Sums, class Add>
__device__ __forceinline__ void add_to_narrow(Sums (&windows)[kOutputs], const Add& add) {
  static_assert(window < kOutputs);
  Sums before = {};
#pragma unroll
  for (int end = 1; end < window + kOutputs; ++end) {
    add(before, end - 1);
    if (end < kOutputs) windows[end] -= before;
    if (end >= window) windows[end - window] += before;
  }
}
/// kWindow is the width of the narrow window that a kernel is made for, or 0.
template <int kWindow, class Sums, class Add>
__device__ __forceinline__ void add_to(Sums (&windows)[kOutputs], int window, const Add& add) {
  if constexpr (kWindow > 0) {
    add_to_narrow<kWindow>(windows, add);
  } else {
    add_to_windows(windows, window, add);
  }
}

/// Starts the windows centred on plane z, from two planes of the stage at a time; if the stage has
/// two places, the next two planes are on their way meanwhile. add(place, has_two) adds the planes
/// at a place. Ends with a barrier.
template <class Stage, class Add>
__device__ __forceinline__ void begin(Stage& stage, int z, int radius, const Add& add) {
  const int last = z + radius;
  const bool has_two_places = stage.has_two_places();
  int place = 0;
  __syncthreads();
  stage.fill(place, z - radius, z - radius + 1, radius > 0);
  for (int plane = z - radius; plane <= last; plane += 2) {
    const int next = plane + 2;
    if (has_two_places && next <= last) stage.fill(1 - place, next, next + 1, next < last);
    stage.wait(place);
    __syncthreads();
    add(place, plane < last);
    __syncthreads();
    if (has_two_places) {
      place = 1 - place;
    } else if (next <= last) {
      stage.fill(place, next, next + 1, next < last);
    }
  }
}

/// Returns the sum of every thread's number, in an order that depends on nothing but the number of
/// threads; thread 0 gets it. `room` holds one number a thread, and all threads must be done with
/// it.
__device__ inline double sum_of_block(double value, double* room) {
  room[threadIdx.x] = value;
  __syncthreads();
  if (threadIdx.x >= gpu::kSubgroup) return 0;
  double sum = 0;
  for (unsigned i = threadIdx.x; i < blockDim.x; i += gpu::kSubgroup) sum += room[i];
  return gpu::subgroup_sum(sum);
}

}  // namespace similis::lncc_internal
