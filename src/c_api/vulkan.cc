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
  bool is_callers = false;
};

namespace similis::c_api {

Queue vulkan_queue(const similis_vulkan_device& device) { return device.device.queue(); }

}  // namespace similis::c_api

similis_status similis_vulkan_device_create(int32_t index, similis_vulkan_device** device) {
  return similis::c_api::call([=] {
    similis::require(device != nullptr,
        "vulkan_device_create: device is NULL; it must point to where the device goes");
    const similis::VulkanDevice opened(index);
    *device = new similis_vulkan_device{opened, opened.name(), false};
  });
}

similis_status similis_vulkan_device_from_handles(
    const similis_vulkan_handles* handles, similis_vulkan_device** device) {
  return similis::c_api::call([=] {
    similis::require(device != nullptr && handles != nullptr,
        "vulkan_device_from_handles: {} is NULL", device == nullptr ? "device" : "handles");
    const similis::c_api::Arguments arguments("vulkan_device_from_handles");
    const similis_vulkan_handles given =
        arguments.options(handles, similis_vulkan_handles SIMILIS_VULKAN_HANDLES_DEFAULTS);
    const similis::VulkanDevice opened(similis::VulkanHandles{.instance = given.instance,
        .physical_device = given.physical_device,
        .device = given.device,
        .queue = given.queue,
        .queue_family = given.queue_family,
        .has_float64 = given.has_float64 != 0,
        .get_instance_proc_addr = given.get_instance_proc_addr,
        .lock_queue = given.lock_queue,
        .unlock_queue = given.unlock_queue,
        .context = given.context});
    *device = new similis_vulkan_device{opened, opened.name(), true};
  });
}

void similis_vulkan_device_destroy(similis_vulkan_device* device) {
  if (device != nullptr && device->is_callers) device->device.close();
  delete device;
}

similis_device similis_vulkan_device_id(const similis_vulkan_device* device) {
  return similis::to_dlpack(device->device.device());
}

const char* similis_vulkan_device_name(const similis_vulkan_device* device) {
  return device->name.c_str();
}
