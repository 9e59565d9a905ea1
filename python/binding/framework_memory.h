// SPDX-License-Identifier: Apache-2.0
// What a call of the library runs on: the framework's stream and memory, or as many threads as it
// uses.
#pragma once

#include <dlpack/dlpack.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "similis/c/core.h"
#include "similis/c/threads.h"

namespace similis_binding {

static_assert(sizeof(similis_tensor) == sizeof(DLTensor));

/// Workspaces from the framework's allocator. What a call leaves is given back at its end.
///
/// Lender: has the types of its blocks, `Owner`, and static functions allocate(DLTensor*, Owner*),
/// which returns the memory or null, release(Owner), and can_allocate().
template <class Lender> class FrameworkMemory {
 public:
  FrameworkMemory() = default;
  FrameworkMemory(const FrameworkMemory&) = delete;
  FrameworkMemory& operator=(const FrameworkMemory&) = delete;
  ~FrameworkMemory() {
    for (const Block& block : blocks_) Lender::release(block.owner);
  }

  /// Runs on the stream, or on at most so many threads.
  similis_execution execution_on(similis_device device, void* stream, std::int64_t threads) {
    similis_execution execution = SIMILIS_EXECUTION_DEFAULTS;
    execution.stream = stream;
    if (device.type != SIMILIS_CUDA && threads > 0) {
      execution.runner = similis_limited_runner(static_cast<std::int32_t>(threads));
    }
    if (device.type == SIMILIS_CUDA && Lender::can_allocate()) {
      execution.allocator = {.allocate = allocate, .release = release, .context = this};
    }
    return execution;
  }

 private:
  using Owner = typename Lender::Owner;
  struct Block {
    void* data;
    Owner owner;
  };

  static void* allocate(void* context, std::size_t bytes, similis_device device, void*) {
    auto extent = static_cast<std::int64_t>(bytes);
    std::int64_t stride = 1;
    DLTensor wanted{.data = nullptr,
        .device = {static_cast<DLDeviceType>(device.type), device.index},
        .ndim = 1,
        .dtype = {kDLUInt, 8, 1},
        .shape = &extent,
        .strides = &stride,
        .byte_offset = 0};
    Owner owner{};
    void* const data = Lender::allocate(&wanted, &owner);
    if (data != nullptr) static_cast<FrameworkMemory*>(context)->blocks_.push_back({data, owner});
    return data;
  }

  static void release(void* context, void* pointer, std::size_t, similis_device, void*) {
    auto& blocks = static_cast<FrameworkMemory*>(context)->blocks_;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i].data != pointer) continue;
      Lender::release(blocks[i].owner);
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
  }

  std::vector<Block> blocks_;
};

}  // namespace similis_binding
