// SPDX-License-Identifier: Apache-2.0
// Loops over elements on the GPU, written as a body of one element: its operator() is the loop's
// inside. The numbers that a loop returns are those of each block, which one more block adds: the
// same bits in every run. To bring 1024 blocks' numbers to the host took longer than most loops.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "src/core/host_device.h"
#include "src/core/tensor/memory.h"
#include "src/gpu/cuda/blocks.h"
#include "src/gpu/cuda/vendor.h"
#include "src/gpu/device.h"
#include "src/registration/passes.h"

namespace similis::registration_internal::cuda {
namespace {  // a kernel has a name in each file that includes it

constexpr int kThreads = 256;
constexpr std::int64_t kMostBlocks = 1024;  // whose numbers are added
constexpr const char* kName = "register";

template <class Body>
__global__ __launch_bounds__(kThreads) void each_kernel(
    std::int64_t count, const SIMILIS_GRID_CONSTANT Body body) {
  const std::int64_t threads = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += threads)
    body(i);
}

template <class Body>
void each(Device device, std::int64_t count, const Execution& exec, const Body& body) {
  const gpu::Current current(device);
  gpu::launch(kName, exec.queue.handle, gpu::blocks_for_items(count, kThreads), kThreads, 0,
      each_kernel<Body>, count, body);
}

// Sums, and the largest of numbers.
template <int sums, int most> struct Found {
  double sum[sums] = {}, largest[most];

  SIMILIS_HOST_DEVICE Found() {
    for (int k = 0; k < most; ++k) largest[k] = -INFINITY;
  }
};

template <class Body>
__global__ __launch_bounds__(kThreads) void reduce_kernel(
    std::int64_t count, const SIMILIS_GRID_CONSTANT Body body, typename Body::Result* results) {
  const std::int64_t threads = std::int64_t{gridDim.x} * kThreads;
  typename Body::Result own;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += threads)
    body(i, own);
  for (double& sum : own.sum) {
    sum = gpu::block_sum<kThreads>(sum);
    __syncthreads();
  }
  __shared__ double shared[kThreads];
  for (double& largest : own.largest) {
    shared[threadIdx.x] = largest;
    for (unsigned half = kThreads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x < half) {
        shared[threadIdx.x] = fmax(shared[threadIdx.x], shared[threadIdx.x + half]);
      }
    }
    __syncthreads();
    largest = shared[0];
    __syncthreads();
  }
  if (threadIdx.x == 0) results[blockIdx.x] = own;
}

// The numbers of a block as an element.
template <class Of> struct Combine {
  using Result = Of;
  const Of* results;

  __device__ void operator()(std::int64_t i, Of& found) const {
    const Of& own = results[i];
    for (std::size_t k = 0; k < sizeof(own.sum) / sizeof(double); ++k) found.sum[k] += own.sum[k];
    for (std::size_t k = 0; k < sizeof(own.largest) / sizeof(double); ++k) {
      found.largest[k] = fmax(found.largest[k], own.largest[k]);
    }
  }
};

template <class Body>
typename Body::Result reduce(
    Device device, std::int64_t count, const Execution& exec, const Body& body) {
  using Result = typename Body::Result;
  const gpu::Current current(device);
  const unsigned blocks = gpu::blocks_for_items(count, kThreads, kMostBlocks);
  const auto memory = allocate_bytes((blocks + 1) * sizeof(Result), device, exec);
  auto* const results = static_cast<Result*>(memory.get());
  gpu::launch(
      kName, exec.queue.handle, blocks, kThreads, 0, reduce_kernel<Body>, count, body, results + 1);
  gpu::launch(kName, exec.queue.handle, 1, kThreads, 0, reduce_kernel<Combine<Result>>, blocks,
      Combine<Result>{results + 1}, results);
  Result all;
  gpu::copy_to_cpu(&all, results, sizeof(Result), device, exec.queue.handle);
  return all;
}

// The place of a voxel. Grids on a GPU have fewer than 2³¹ voxels.
struct Sizes {
  unsigned size[3];

  explicit Sizes(const std::array<std::int64_t, 3>& of) {
    for (std::size_t a = 0; a < 3; ++a) size[a] = static_cast<unsigned>(of[a]);
  }
  __device__ void place(std::int64_t voxel, int (&at)[3]) const {
    const auto i = static_cast<unsigned>(voxel);
    at[0] = static_cast<int>(i % size[0]);
    at[1] = static_cast<int>(i / size[0] % size[1]);
    at[2] = static_cast<int>(i / size[0] / size[1]);
  }
};

}  // namespace
}  // namespace similis::registration_internal::cuda
