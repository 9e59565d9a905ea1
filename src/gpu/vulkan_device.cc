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
gpu::vulkan::Gpu* handed_over(const VulkanHandles& handles) {
  return &gpu::vulkan::handed_over(handles);
}
int index_of(gpu::vulkan::Gpu* gpu) { return gpu->index(); }
void give_back(int index) { gpu::vulkan::give_back_device(index); }
#else
[[noreturn]] void refuse_device() {
  throw DeviceError("vulkan: " + gpu::describe(DeviceKind::vulkan));
}
void* opened(int) { refuse_device(); }
std::string name_of(int) { refuse_device(); }
std::string arithmetic_of(int) { refuse_device(); }
void* handed_over(const VulkanHandles&) { refuse_device(); }
int index_of(void*) { refuse_device(); }
void give_back(int) { refuse_device(); }
#endif

int index_named(std::string_view part_of_name) {
  const int count = gpu::device_count(DeviceKind::vulkan);
  for (int index = 0; index < count; ++index) {
    if (name_of(index).find(part_of_name) != std::string::npos) return index;
  }
  throw DeviceError(fmt::format("vulkan: no device has \"{}\" in its name: {}", part_of_name,
      gpu::describe(DeviceKind::vulkan)));
}

}  // namespace

VulkanDevice::VulkanDevice(int index) : index_(index), gpu_(opened(index)) {}
VulkanDevice::VulkanDevice(std::string_view part_of_name)
    : VulkanDevice(index_named(part_of_name)) {}
VulkanDevice::VulkanDevice(const VulkanHandles& handles) {
  auto* const gpu = handed_over(handles);
  index_ = index_of(gpu);
  gpu_ = gpu;
}

void VulkanDevice::close() { give_back(index_); }

std::string VulkanDevice::name() const { return name_of(index_); }
std::string VulkanDevice::arithmetic() const { return arithmetic_of(index_); }

}  // namespace similis
