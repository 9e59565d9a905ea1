// SPDX-License-Identifier: Apache-2.0
// Memory for results and workspaces: the caller's allocator, or aligned heap memory.
#include "src/core/tensor/memory.h"

#include <cstdlib>
#include <limits>

#include "src/core/require.h"
#include "src/gpu/device.h"

namespace similis {
namespace {

constexpr std::size_t kAlignment = 256;

void* allocate_on_heap(std::size_t bytes) {
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded);
}

}  // namespace

std::shared_ptr<void> allocate_bytes(std::size_t bytes, Device device, const Execution& exec) {
  const Allocator allocator = exec.allocator;
  if (allocator.allocate == nullptr) {
    const gpu::DeviceFunctions* const gpu = gpu::device_functions(device.kind);
    require(device.kind == DeviceKind::cpu || gpu != nullptr,
        "allocate: this build of similis has no GPU; it cannot give memory on {}", device);
    void* queue = exec.queue.handle;
    void* pointer = gpu == nullptr ? allocate_on_heap(bytes) : gpu->allocate(bytes, device, queue);
    if (pointer == nullptr)
      throw Error(fmt::format("out of memory: {} bytes on {}", bytes, device));
    if (gpu == nullptr) return {pointer, std::free};
    return {pointer, [gpu, device, queue](void* memory) { gpu->release(memory, device, queue); }};
  }
  void* stream = exec.queue.handle;
  void* pointer = allocator.allocate(allocator.context, bytes, device, stream);
  if (pointer == nullptr && bytes > 0) {
    throw Error(fmt::format("the allocator gave no memory: {} bytes on {}", bytes, device));
  }
  return {pointer, [allocator, bytes, device, stream](void* memory) {
            if (allocator.release != nullptr) {
              allocator.release(allocator.context, memory, bytes, device, stream);
            }
          }};
}

Tensor allocate(const Extents& shape, DType dtype, Device device, const Execution& exec) {
  std::size_t bytes = size_bytes(dtype);
  for (const std::int64_t extent : shape) {
    require(extent >= 0, "allocate: shape is {}; no extent may be negative", shape);
    require(extent == 0 || bytes <= std::numeric_limits<std::size_t>::max() / 2 /
                                        static_cast<std::size_t>(extent),
        "allocate: shape is {}; that is more than memory can be addressed", shape);
    bytes *= static_cast<std::size_t>(extent);
  }
  std::shared_ptr<void> owner = allocate_bytes(bytes, device, exec);
  const TensorView view(owner.get(), shape, dtype, device);
  return {view, std::move(owner)};
}

}  // namespace similis
