// SPDX-License-Identifier: Apache-2.0
// Vulkan devices for C.
#include "similis/c/vulkan.h"

#include "similis/dlpack.hpp"
#include "similis/vulkan.hpp"
#include "src/c_api/call.h"
#include "src/core/require.h"
#include "src/core/tensor/dlpack.h"

struct similis_vulkan_device {
  similis::VulkanDevice device;
  std::string name;
};

namespace similis::c_api {

Queue vulkan_queue(const similis_vulkan_device& device) { return device.device.queue(); }

}  // namespace similis::c_api

similis_status similis_vulkan_device_create(int32_t index, similis_vulkan_device** device) {
  return similis::c_api::call([=] {
    similis::require(device != nullptr,
        "vulkan_device_create: device is NULL; it must point to where the device goes");
    const similis::VulkanDevice opened(index);
    *device = new similis_vulkan_device{opened, opened.name()};
  });
}

void similis_vulkan_device_destroy(similis_vulkan_device* device) { delete device; }

similis_device similis_vulkan_device_id(const similis_vulkan_device* device) {
  return similis::to_dlpack(device->device.device());
}

const char* similis_vulkan_device_name(const similis_vulkan_device* device) {
  return device->name.c_str();
}
