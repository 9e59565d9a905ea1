// SPDX-License-Identifier: Apache-2.0
// Arrays of a test on the GPU: copies with the same strides, and back again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "similis/execution.hpp"
#include "src/core/tensor/memory.h"
#include "src/gpu/device.h"

namespace similis::test {

/// The bytes from an array's first element in memory to its last.
struct Span {
  std::int64_t before = 0, bytes = 0;  ///< elements before the one at index 0; bytes in all

  explicit Span(const TensorView& view) {
    std::int64_t after = 0;
    for (int axis = 0; axis < view.shape.rank(); ++axis) {
      const std::int64_t reach = (view.shape[axis] - 1) * view.strides[axis];
      (reach < 0 ? before : after) += std::abs(reach);
    }
    bytes = (before + after + 1) * static_cast<std::int64_t>(size_bytes(view.dtype));
  }
};

/// A copy on the GPU of an array on the CPU, memory between its elements included, with the same
/// offset.
class OnGpu {
 public:
  OnGpu(const TensorView& view, void* stream = nullptr) : cpu_(view), gpu_(view), stream_(stream) {
    if (view.empty()) return;
    const Span span(view);
    gpu_.device = {DeviceKind::cuda, 0};
    gpu_.offset = std::max(view.offset, span.before);
    memory_ =
        allocate_bytes(static_cast<std::size_t>(bytes_of(gpu_.offset - span.before) + span.bytes),
            gpu_.device, {.queue = Queue::cuda(stream)});
    gpu_.handle = memory_.get();
    gpu::copy_from_cpu(
        first(gpu_), first(cpu_), static_cast<std::size_t>(span.bytes), gpu_.device, stream);
  }
  const TensorView& view() const { return gpu_; }

  /// Copies the memory on the GPU back into the array that it was copied from.
  void bring_back() const {
    if (cpu_.empty()) return;
    gpu::copy_to_cpu(
        first(cpu_), first(gpu_), static_cast<std::size_t>(Span(cpu_).bytes), gpu_.device, stream_);
  }

 private:
  std::int64_t bytes_of(std::int64_t elements) const {
    return elements * static_cast<std::int64_t>(size_bytes(cpu_.dtype));
  }
  /// The element with the lowest address.
  char* first(const TensorView& view) const {
    return static_cast<char*>(view.data()) - bytes_of(Span(view).before);
  }

  TensorView cpu_, gpu_;
  void* stream_;
  std::shared_ptr<void> memory_;
};

}  // namespace similis::test
