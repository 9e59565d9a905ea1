// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu_on_cpu/launch.h"

#include <sys/mman.h>

#include <algorithm>
#include <boost/context/detail/fcontext.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

thread_local uint3 threadIdx, blockIdx;
thread_local dim3 blockDim, gridDim;

namespace similis::gpu_on_cpu {
namespace {

using boost::context::detail::fcontext_t;
using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

constexpr std::size_t kStackBytes = 128 * 1024, kAlignment = 1024;

enum class State { ready, waits_for_warp, waits_for_block, ended };

struct Thread {
  fcontext_t context = nullptr;
  State state = State::ended;
  uint3 index;
};

// Stacks are kept for the next launch: to map 1024 of them takes longer than most kernels here.
class Stacks {
 public:
  ~Stacks() {
    for (void* each : stacks_) munmap(each, kStackBytes);
  }
  void* operator[](std::size_t index) {
    while (stacks_.size() <= index) {
      void* memory = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (memory == MAP_FAILED) throw std::bad_alloc();
      stacks_.push_back(memory);
    }
    return stacks_[index];
  }

 private:
  std::vector<void*> stacks_;
};

// SIMILIS_GPU_ORDER=backward runs the threads of a block from the last to the first: results must
// not change.
bool is_backward() {
  static const bool backward = [] {
    const char* order = std::getenv("SIMILIS_GPU_ORDER");
    return order != nullptr && std::strcmp(order, "backward") == 0;
  }();
  return backward;
}

class Block {
 public:
  Block(dim3 threads, std::size_t shared_bytes, const std::function<void()>& body)
      : threads_(threads.x * threads.y * threads.z),
        words_(threads_.size() + kLanes),
        shared_bytes_(shared_bytes),
        body_(body) {
    const std::size_t bytes = (shared_bytes + kAlignment) / kAlignment * kAlignment;
    shared_.reset(static_cast<unsigned char*>(std::aligned_alloc(kAlignment, bytes)));
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      const auto t = static_cast<unsigned>(i);
      threads_[i].index = {t % threads.x, t / threads.x % threads.y, t / threads.x / threads.y};
    }
  }

  void run();
  void wait(State state);

  void* shared() { return shared_.get(); }
  std::uint64_t* words_of_warp() { return &words_[current_ / kLanes * kLanes]; }
  unsigned lane() const { return static_cast<unsigned>(current_ % kLanes); }
  unsigned lanes_of_warp() const;
  bool vote(bool is_true);

 private:
  static void enter(transfer_t from);
  void resume(std::size_t index);
  bool release_warp(std::size_t first);
  bool all_wait(std::size_t first, std::size_t last, State state) const;
  std::size_t end_of_warp(std::size_t first) const {
    return std::min(first + kLanes, threads_.size());
  }

  std::vector<Thread> threads_;
  std::vector<std::uint64_t> words_;
  std::size_t shared_bytes_;
  const std::function<void()>& body_;
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<unsigned char, Free> shared_;
  std::size_t current_ = 0;
  fcontext_t scheduler_ = nullptr;
  bool votes_[2] = {};  // of the barrier that is being reached, and of the last one
#if defined(__SANITIZE_ADDRESS__)
  const void* scheduler_stack_ = nullptr;
  std::size_t scheduler_bytes_ = 0;
#endif
};

thread_local Block* current_block = nullptr;
thread_local Stacks stacks;

void Block::enter(transfer_t from) {
  Block& block = *static_cast<Block*>(from.data);
  block.scheduler_ = from.fctx;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &block.scheduler_stack_, &block.scheduler_bytes_);
#endif
  block.body_();
  block.threads_[block.current_].state = State::ended;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(nullptr, block.scheduler_stack_, block.scheduler_bytes_);
#endif
  jump_fcontext(block.scheduler_, nullptr);
}

void Block::resume(std::size_t index) {
  Thread& thread = threads_[index];
  current_ = index;
  threadIdx = thread.index;
#if defined(__SANITIZE_ADDRESS__)
  void* own = nullptr;
  __sanitizer_start_switch_fiber(&own, stacks[index], kStackBytes);
#endif
  thread.context = jump_fcontext(thread.context, this).fctx;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(own, nullptr, nullptr);
#endif
}

void Block::wait(State state) {
  threads_[current_].state = state;
#if defined(__SANITIZE_ADDRESS__)
  void* own = nullptr;
  __sanitizer_start_switch_fiber(&own, scheduler_stack_, scheduler_bytes_);
#endif
  scheduler_ = jump_fcontext(scheduler_, nullptr).fctx;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(own, &scheduler_stack_, &scheduler_bytes_);
#endif
}

bool Block::all_wait(std::size_t first, std::size_t last, State state) const {
  bool one = false;
  for (std::size_t i = first; i < last; ++i) {
    if (threads_[i].state == State::ended) continue;
    if (threads_[i].state != state) return false;
    one = true;
  }
  return one;
}

unsigned Block::lanes_of_warp() const {
  const std::size_t first = current_ / kLanes * kLanes;
  unsigned lanes = 0;
  for (std::size_t i = first; i < end_of_warp(first); ++i)
    lanes |= static_cast<unsigned>(threads_[i].state != State::ended) << (i - first);
  return lanes;
}

bool Block::vote(bool is_true) {
  votes_[0] |= is_true;
  wait(State::waits_for_block);
  return votes_[1];
}

void Block::run() {
  std::memset(shared_.get(), 0xff, shared_bytes_);
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    auto* stack = static_cast<unsigned char*>(stacks[i]);
    threads_[i].context = make_fcontext(stack + kStackBytes, kStackBytes, enter);
    threads_[i].state = State::ready;
  }
  const auto count = threads_.size();
  for (;;) {
    bool progress = false;
    for (std::size_t warp = 0; warp < count; warp += kLanes) {
      const std::size_t first = is_backward() ? (count - 1) / kLanes * kLanes - warp : warp;
      const std::size_t last = end_of_warp(first);
      do {
        for (std::size_t k = first; k < last; ++k) {
          const std::size_t i = is_backward() ? first + last - 1 - k : k;
          if (threads_[i].state != State::ready) continue;
          resume(i);
          progress = true;
        }
      } while (release_warp(first));
    }
    if (all_wait(0, count, State::waits_for_block)) {
      votes_[1] = votes_[0];
      votes_[0] = false;
      for (Thread& each : threads_)
        if (each.state == State::waits_for_block) each.state = State::ready;
      continue;
    }
    if (all_wait(0, count, State::ended) || !progress) break;
  }
  for (const Thread& each : threads_) {
    if (each.state == State::ended) continue;
    std::fprintf(stderr, "gpu_on_cpu: threads of a block wait at different barriers for ever\n");
    std::abort();
  }
}

bool Block::release_warp(std::size_t first) {
  const std::size_t last = end_of_warp(first);
  if (!all_wait(first, last, State::waits_for_warp)) return false;
  for (std::size_t i = first; i < last; ++i)
    if (threads_[i].state == State::waits_for_warp) threads_[i].state = State::ready;
  return true;
}

}  // namespace

void run(dim3 blocks, dim3 threads, std::size_t shared_bytes, const std::function<void()>& body) {
  Block block(threads, shared_bytes, body);
  current_block = &block;
  gridDim = blocks;
  blockDim = threads;
  for (blockIdx.z = 0; blockIdx.z < blocks.z; ++blockIdx.z)
    for (blockIdx.y = 0; blockIdx.y < blocks.y; ++blockIdx.y)
      for (blockIdx.x = 0; blockIdx.x < blocks.x; ++blockIdx.x) block.run();
  current_block = nullptr;
}

void* dynamic_shared() { return current_block->shared(); }
bool wait_for_block(bool is_true) { return current_block->vote(is_true); }
void wait_for_warp() { current_block->wait(State::waits_for_warp); }
std::uint64_t* words_of_warp() { return current_block->words_of_warp(); }
unsigned lanes_of_warp() { return current_block->lanes_of_warp(); }
unsigned lane() { return current_block->lane(); }

}  // namespace similis::gpu_on_cpu
