// SPDX-License-Identifier: Apache-2.0
// The devices that the loader finds, as their drivers describe them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/gpu/vulkan/api.h"

namespace similis::gpu::vulkan {

/// A device as the driver describes it.
struct Described {
  VkPhysicalDevice physical = nullptr;
  VkPhysicalDeviceProperties properties = {};
  std::string driver;  ///< its name and version, in the driver's words
  bool has_doubles = false;
  std::uint32_t queue_family = 0;
  std::uint32_t copy_family = 0;  ///< one that only copies, else queue_family
};

/// The devices that similis can use, in the loader's order.
const std::vector<Described>& devices();

/// The devices in words, or why there are none.
std::string describe_devices();

}  // namespace similis::gpu::vulkan
