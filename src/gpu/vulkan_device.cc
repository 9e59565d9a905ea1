// SPDX-License-Identifier: Apache-2.0
// VulkanDevice; a build without Vulkan has it too, and says so.
#include "similis/vulkan.hpp"

#include "src/core/require.h"
#include "src/gpu/device.h"
#ifdef SIMILIS_HAS_VULKAN
#include "src/gpu/vulkan/gpu.h"
#endif

namespace similis {
namespace {

#ifdef SIMILIS_HAS_VULKAN
gpu::vulkan::Gpu* opened(int index) { return &gpu::vulkan::opened(index); }
std::string name_of(int index) {
  return gpu::vulkan::opened(index).described().properties.deviceName;
}
std::string arithmetic_of(int index) {
  return gpu::vulkan::verdict(gpu::vulkan::opened(index).arithmetic());
}
#else
[[noreturn]] void refuse_device() {
  throw DeviceError("vulkan: " + gpu::describe(DeviceKind::vulkan));
}
void* opened(int) { refuse_device(); }
std::string name_of(int) { refuse_device(); }
std::string arithmetic_of(int) { refuse_device(); }
#endif

int index_of(std::string_view part_of_name) {
  const int count = gpu::device_count(DeviceKind::vulkan);
  for (int index = 0; index < count; ++index) {
    if (name_of(index).find(part_of_name) != std::string::npos) return index;
  }
  throw DeviceError(fmt::format("vulkan: no device has \"{}\" in its name: {}", part_of_name,
      gpu::describe(DeviceKind::vulkan)));
}

}  // namespace

VulkanDevice::VulkanDevice(int index) : index_(index), gpu_(opened(index)) {}
VulkanDevice::VulkanDevice(std::string_view part_of_name) : VulkanDevice(index_of(part_of_name)) {}

std::string VulkanDevice::name() const { return name_of(index_); }
std::string VulkanDevice::arithmetic() const { return arithmetic_of(index_); }

}  // namespace similis
