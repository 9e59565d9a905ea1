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

/// Fills in the description of a device but for its queues. Returns the name of what it lacks that
/// every kernel needs; empty if nothing.
std::string describe(const Api& api, Described& device);
/// The properties of the device's queue families.
std::vector<VkQueueFamilyProperties> queue_families(const Api& api, VkPhysicalDevice device);

/// A device in words.
std::string describe_device(int index);
/// All of them, or why there are none.
std::string describe_devices();

}  // namespace similis::gpu::vulkan
