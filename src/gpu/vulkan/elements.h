// SPDX-License-Identifier: Apache-2.0
// A tensor as kernels read it: a buffer of words of 4 B, and where in it each element is.
#pragma once

#include <cstdint>

#include "similis/tensor.hpp"
#include "src/gpu/vulkan/commands.h"

namespace similis::gpu::vulkan {

struct Elements {
  VkBuffer buffer = nullptr;
  std::int32_t offset = 0;              ///< in elements, to the first
  std::int32_t strides[kMaxRank] = {};  ///< in elements
};

/// The elements of a tensor of the device, or of a dense copy that the commands make of one on the
/// CPU. Throws DeviceError, for the operation, if an element is beyond what the device reads of a
/// buffer.
Elements elements_of(const char* operation, Commands& commands, const TensorView& tensor);

/// Throws DeviceError if a kernel cannot have so many elements in one buffer.
void require_addressable(
    const char* operation, Gpu& gpu, std::int64_t elements, std::size_t bytes_each);

}  // namespace similis::gpu::vulkan
