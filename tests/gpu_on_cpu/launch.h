// SPDX-License-Identifier: Apache-2.0
// Runs a kernel on the CPU: the blocks one after the other, the threads of a block by turns. A
// thread runs until it ends or waits at a barrier, so that a value read before its barrier is a
// stale one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

struct uint3 {
  unsigned x = 0, y = 0, z = 0;
};
struct dim3 {
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  unsigned x, y, z;
};

extern thread_local uint3 threadIdx, blockIdx;
extern thread_local dim3 blockDim, gridDim;

namespace similis::gpu_on_cpu {

/// Calls `body` once a thread of the grid.
void run(dim3 blocks, dim3 threads, std::size_t shared_bytes, const std::function<void()>& body);

/// The block's memory of `shared_bytes`, aligned to 1024; every byte is 0xff when a block begins.
void* dynamic_shared();

/// Waits for all threads of the block that have not ended; true if `is_true` was in one of them.
bool wait_for_block(bool is_true = false);

/// Waits for all threads of the warp that have not ended.
void wait_for_warp();

constexpr unsigned kLanes = 32;
/// 8 bytes for each lane of this thread's warp, by which they exchange values.
std::uint64_t* words_of_warp();
/// The lanes of this warp that have not ended.
unsigned lanes_of_warp();
unsigned lane();

}  // namespace similis::gpu_on_cpu
