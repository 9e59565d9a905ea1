// SPDX-License-Identifier: Apache-2.0
// Copies runs of bytes from global to shared memory while the block does other things: the copy
// engine of compute capability 9.0 does it, and elsewhere a thread copies at once.
#pragma once

#include "src/gpu/cuda/tensor_copy.h"
#include "src/gpu/cuda/vendor.h"

namespace similis::gpu {

/// Copies go to two places in rounds; barriers of the block separate the rounds of a place:
///   expect(place, bytes)   thread 0 says what all copies of the round take; 0 if there is none
///   copy(place, …)         any thread asks for a copy
///   wait(place)            every thread waits for the copies of the round
/// Threads that wrote to shared memory which copies write to later publish() before the barrier in
/// front of these calls.
class BulkCopies {
 public:
  static constexpr int kBytes = 16;  ///< shared memory that an object takes, aligned to 8

  /// A barrier must come before the first round.
  __device__ explicit BulkCopies(void* room) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    flags_ = static_cast<Flag*>(room);
    if (threadIdx.x == 0) {
      init_flag(flags_);
      init_flag(flags_ + 1);
      publish_flags();
    }
#else
    static_cast<void>(room);
#endif
  }

  __device__ static void publish() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    publish_flags();
#endif
  }
  __device__ void expect(int place, int bytes) const {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    expect_bytes(flags_ + place, static_cast<unsigned>(bytes));
#else
    static_cast<void>(place);
    static_cast<void>(bytes);
#endif
  }
  /// Addresses and bytes must be multiples of 16.
  __device__ void copy(int place, void* to, const void* from, int bytes) const {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
        "[%3];" ::"r"(shared_address(to)),
        "l"(from), "r"(bytes), "r"(shared_address(flags_ + place))
        : "memory");
#else
    static_cast<void>(place);
    for (int i = 0; i < bytes / 16; ++i)
      static_cast<int4*>(to)[i] = static_cast<const int4*>(from)[i];
#endif
  }
  __device__ void wait(int place) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    wait_for(flags_ + place, turns_ >> place);
    turns_ ^= 1 << place;
#else
    static_cast<void>(place);
#endif
  }

  /// Copies one f32 outside the rounds; the thread that copied waits for its words.
  __device__ static void copy_word(float* to, const float* from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    gpu::copy_word(to, from, true);
#else
    *to = *from;
#endif
  }
  __device__ static void wait_for_words() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
  }

 private:
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  Flag* flags_;
  int turns_ = 0;  // bit k is the parity of place k
#endif
};

}  // namespace similis::gpu
