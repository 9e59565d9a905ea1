// SPDX-License-Identifier: Apache-2.0
// A tensor as kernels read it: a buffer of words of 4 B, and where in it each element is.
#pragma once

#include <cstdint>
#include <vector>

#include "similis/execution.hpp"
#include "similis/tensor.hpp"
#include "src/gpu/vulkan/commands.h"

namespace similis::gpu::vulkan {

struct Elements {
  VkBuffer buffer = nullptr;
  std::int32_t offset = 0;              ///< in elements, to the first
  std::int32_t strides[kMaxRank] = {};  ///< in elements
};

/// The elements of a tensor of the device, or of a copy that the commands make of one on the CPU.
/// The runner's threads copy large arrays. Throws DeviceError, for the operation, if an element is
/// beyond what the device reads of a buffer.
Elements elements_of(const char* operation, Commands& commands, const TensorView& tensor,
    const Execution& exec = {.runner = serial_runner()});

/// The elements of an array of floats; f64 on the CPU is copied as f32.
struct Floats {
  Elements elements;
  DType dtype;
};
Floats floats_of(const char* operation, Commands& commands, const TensorView& tensor);

/// The results of a call: kernels write them into tensors of the device, and into dense copies of
/// tensors on the CPU, which finish() brings back.
class Results {
 public:
  Results(const char* operation, Commands& commands) : operation_(operation), commands_(commands) {}

  Elements elements_of(const TensorView& result);
  /// Submits the commands. Waits if a result is on the CPU.
  void finish();

 private:
  struct Copy {
    VkBuffer buffer;
    TensorView to;
  };
  const char* operation_;
  Commands& commands_;
  std::vector<Copy> copies_;
};

/// Throws DeviceError if a kernel cannot have so many elements in one buffer.
void require_addressable(
    const char* operation, Gpu& gpu, std::int64_t elements, std::size_t bytes_each);

}  // namespace similis::gpu::vulkan
