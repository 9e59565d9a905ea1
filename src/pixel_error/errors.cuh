// SPDX-License-Identifier: Apache-2.0
// The common part of kernels with and without a mask: a call's arrays, and the error of a pixel.
#pragma once

#include <cstdint>
#include <type_traits>

#include "src/gpu/cuda/block_sum_of.h"
#include "src/gpu/cuda/half.h"
#include "src/gpu/cuda/upstream.h"
#include "src/gpu/cuda/view.h"
#include "src/pixel_error/pixel_error.h"
#include "src/pixel_error/walk.cuh"

namespace similis::pixel_error_internal {

constexpr int kThreads = 256;

struct Work {
  Walk walk;
  bool is_dense;  // the pixels of a result lie side by side, from multiples of 16 bytes on
  const void *x, *y;
  void *x_gradient, *y_gradient;  // null if not wanted
  gpu::Upstream upstream;
  Error error;
  double divisor;
  std::int64_t slots;  // number of blocks that share a result
  double* sums;        // [result][slot]; null if not wanted
};

// An element as a double.
template <class T> __device__ __forceinline__ double number(T element) {
  if constexpr (std::is_same_v<T, double>) {
    return element;
  } else {
    return static_cast<double>(gpu::to_float(element));
  }
}

// Writes a number, rounded as store() does.
template <class T> __device__ __forceinline__ void write(double number, T* to) {
  if constexpr (std::is_same_v<T, F16> || std::is_same_v<T, BF16>) {
    *to = gpu::rounded<T>(static_cast<float>(number));
  } else {
    store(number, to);
  }
}

// Elements that lie side by side, in accesses of 16 bytes.
template <class T, int count> struct alignas(count * sizeof(T) < 16 ? count * sizeof(T) : 16) Pack {
  static_assert(16 % sizeof(T) == 0);
  T of[count];
};
struct PixelError {
  double error, slope;  // and its derivative by x
};
__device__ __forceinline__ PixelError error_of(Error error, double difference) {
  if (error == Error::squared) return {difference * difference, 2 * difference};
  return {fabs(difference), difference > 0 ? 1.0 : difference < 0 ? -1.0 : 0.0};
}

// Returns the sum of what the blocks of a result have added up, to all threads.
__device__ inline double sum_of_slots(const double* sums, std::int64_t result, std::int64_t slots) {
  __shared__ double sum;
  const double total =
      gpu::block_sum_of<kThreads>(slots, [&](std::int64_t i) { return sums[result * slots + i]; });
  if (threadIdx.x == 0) sum = total;
  __syncthreads();
  const double all = sum;
  __syncthreads();
  return all;
}

}  // namespace similis::pixel_error_internal
