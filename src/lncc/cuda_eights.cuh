// SPDX-License-Identifier: Apache-2.0
// Eight windows that begin one line after the other, and what a thread needs of the lines under
// them.
#pragma once

#include "src/lncc/cuda_march.h"

namespace similis::lncc_internal {

/// Asks for the first lines under a thread's windows.
template <int kAhead, class Line, class Fetch>
__device__ __forceinline__ void ask(Line (&lines)[kAhead], const Fetch& fetch) {
#pragma unroll
  for (int i = 0; i < kAhead; ++i) lines[i] = fetch(i);
}

/// Adds to each of a thread's windows the sum over its lines: of window i those from i to
/// i + window - 1. fetch(line) asks for a line, add(sums, fetched) adds it to sums; `lines` are the
/// first, which have been asked for. A window is what lies before its end less what lies before its
/// beginning, so that it costs as much however wide it is.
template <int kAhead, class Sums, class Line, class Fetch, class Add>
__device__ __forceinline__ void add_to_windows(Sums (&windows)[kEight], int window,
    Line (&lines)[kAhead], const Fetch& fetch, const Add& add) {
  const auto next = [&](Sums& sums, int line, bool has_more) {
    const Line now = lines[0];
#pragma unroll
    for (int i = 1; i < kAhead; ++i) lines[i - 1] = lines[i];
    if (has_more) lines[kAhead - 1] = fetch(line + kAhead);
    asm volatile("" ::: "memory");  // else all lines are fetched at once, into too many registers
    add(sums, now);
  };
  Sums before = {};
#pragma unroll
  for (int i = 1; i < kEight; ++i) {
    next(before, i - 1, true);
    windows[i] -= before;
  }
  int line = kEight - 1;
  if (window < line) {  // the first window ends among these lines: they are looked at again
    before = {};
    line = 0;
    ask(lines, fetch);
  }
  for (; line < window; ++line) next(before, line, true);
  windows[0] += before;
#pragma unroll
  for (int i = 1; i < kEight; ++i) {
    next(before, window + i - 1, i - 1 + kAhead < kEight - 1);
    windows[i] += before;
  }
}

/// The sum of every thread's number, in an order that depends on nothing but how many threads there
/// are; thread 0 gets it. `room` holds one a thread, and all threads are done with it.
__device__ inline double sum_of_block(double value, double* room) {
  room[threadIdx.x] = value;
  __syncthreads();
  if (threadIdx.x >= gpu::kCrew) return 0;
  double sum = 0;
  for (unsigned i = threadIdx.x; i < blockDim.x; i += gpu::kCrew) sum += room[i];
  return gpu::sum_of_32(sum);
}

}  // namespace similis::lncc_internal
