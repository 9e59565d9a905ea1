// SPDX-License-Identifier: Apache-2.0
// Copies of runs of bytes from global to shared memory that go on while the block does other
// things: the copy engine's from compute capability 9.0, elsewhere done at once.
#pragma once

#include "src/gpu/cuda/tensor_copy.h"
#include "src/gpu/cuda/vendor.h"

namespace similis::gpu {

/// Rounds of copies to two places, in each one round after the other with barriers of the block
/// between them:
///   expect(place, bytes)   by thread 0: what all copies of the round take; 0 if there is none
///   copy(place, …)         by any thread
///   wait(place)            by every thread: they have come
/// Where threads wrote to shared memory what copies write to later, they publish() before the
/// barrier that comes before these.
class BulkCopies {
 public:
  static constexpr int kBytes = 16;  ///< of shared memory, aligned to 8

  /// A barrier comes before the first round.
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
  /// Addresses and bytes are multiples of 16.
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

  /// One f32, beside the rounds; the thread that copied waits for its words.
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
  int turns_ = 0;  // of each place, a bit
#endif
};

}  // namespace similis::gpu
