// SPDX-License-Identifier: Apache-2.0
// The execution of a call for torch: its stream and workspaces from its allocator, or as many
// threads as it uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "python/binding/exchange.h"
#include "similis/c/core.h"
#include "similis/c/threads.h"

namespace similis_binding {

/// Workspaces from the framework's allocator. The rest of a call is given back at its end.
class FrameworkMemory {
 public:
  explicit FrameworkMemory(const ExchangeTable& table) : table_(table) {}
  FrameworkMemory(const FrameworkMemory&) = delete;
  FrameworkMemory& operator=(const FrameworkMemory&) = delete;
  ~FrameworkMemory() {
    for (LentTensor* const block : blocks_) block->deleter(block);
  }

  /// Runs on the stream, or on at most so many threads.
  similis_execution execution_on(similis_device device, void* stream, std::int64_t threads) {
    similis_execution execution = SIMILIS_EXECUTION_DEFAULTS;
    execution.stream = stream;
    if (device.type == SIMILIS_CUDA) {
      execution.allocator = {.allocate = allocate, .release = release, .context = this};
    } else if (threads > 0) {
      execution.runner = similis_limited_runner(static_cast<std::int32_t>(threads));
    }
    return execution;
  }

 private:
  static void* start_of(const LentTensor* block) {
    return static_cast<char*>(block->tensor.data) + block->tensor.byte_offset;
  }

  static void* allocate(void* context, std::size_t bytes, similis_device device, void*) {
    auto* const self = static_cast<FrameworkMemory*>(context);
    auto extent = static_cast<std::int64_t>(bytes);
    std::int64_t stride = 1;
    const similis_tensor wanted{.data = nullptr,
        .device = device,
        .ndim = 1,
        .dtype = SIMILIS_UINT8,
        .shape = &extent,
        .strides = &stride,
        .byte_offset = 0};
    const auto ignore = [](void*, const char*, const char*) {};  // the library says what it lacks
    LentTensor* block = nullptr;
    if (self->table_.allocate(&wanted, &block, nullptr, ignore) != 0) return nullptr;
    self->blocks_.push_back(block);
    return start_of(block);
  }

  static void release(void* context, void* pointer, std::size_t, similis_device, void*) {
    auto& blocks = static_cast<FrameworkMemory*>(context)->blocks_;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (start_of(blocks[i]) != pointer) continue;
      blocks[i]->deleter(blocks[i]);
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
  }

  const ExchangeTable& table_;
  std::vector<LentTensor*> blocks_;
};

}  // namespace similis_binding
