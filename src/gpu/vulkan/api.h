// SPDX-License-Identifier: Apache-2.0
// The Vulkan functions that similis calls, found at run time: the loader is opened when it is first
// asked for, and nothing of Vulkan is linked.
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <string>

namespace similis::gpu::vulkan {

// clang-format off
#define SIMILIS_VULKAN_INSTANCE(X)                                                             \
  X(EnumeratePhysicalDevices) X(GetPhysicalDeviceProperties2) X(GetPhysicalDeviceFeatures2)    \
  X(GetPhysicalDeviceMemoryProperties) X(GetPhysicalDeviceQueueFamilyProperties)               \
  X(CreateDevice) X(GetDeviceProcAddr)
#define SIMILIS_VULKAN_DEVICE(X)                                                               \
  X(GetDeviceQueue) X(QueueSubmit) X(QueueWaitIdle)                                            \
  X(CreateBuffer) X(DestroyBuffer) X(GetBufferMemoryRequirements) X(BindBufferMemory)          \
  X(AllocateMemory) X(FreeMemory) X(MapMemory)                                                 \
  X(CreateShaderModule) X(DestroyShaderModule)                                                 \
  X(CreateDescriptorSetLayout) X(DestroyDescriptorSetLayout)                                   \
  X(CreatePipelineLayout) X(DestroyPipelineLayout)                                             \
  X(CreatePipelineCache) X(DestroyPipelineCache) X(GetPipelineCacheData)                       \
  X(CreateComputePipelines) X(DestroyPipeline)                                                 \
  X(CreateDescriptorPool) X(DestroyDescriptorPool) X(ResetDescriptorPool)                      \
  X(AllocateDescriptorSets) X(UpdateDescriptorSets)                                            \
  X(CreateCommandPool) X(DestroyCommandPool) X(ResetCommandPool) X(AllocateCommandBuffers)     \
  X(BeginCommandBuffer) X(EndCommandBuffer)                                                    \
  X(CmdBindPipeline) X(CmdBindDescriptorSets) X(CmdPushConstants) X(CmdDispatch)               \
  X(CmdPipelineBarrier) X(CmdCopyBuffer) X(CmdFillBuffer)                                      \
  X(CreateSemaphore) X(DestroySemaphore) X(WaitSemaphores) X(GetSemaphoreCounterValue)
// clang-format on

#define SIMILIS_VULKAN_MEMBER(name) PFN_vk##name name = nullptr;
struct Api {
  SIMILIS_VULKAN_INSTANCE(SIMILIS_VULKAN_MEMBER)
};
struct DeviceApi {
  SIMILIS_VULKAN_DEVICE(SIMILIS_VULKAN_MEMBER)
};
#undef SIMILIS_VULKAN_MEMBER

/// The loader and an instance of its, or the reason why there is none.
struct Loaded {
  Api api;
  VkInstance instance = nullptr;
  std::string problem;  ///< empty if the instance can be used
};
const Loaded& loaded();

/// vkGetInstanceProcAddr of the loader; null if there is no loader.
PFN_vkGetInstanceProcAddr loader_function();
/// Says that there is no loader, and what to do.
std::string no_loader();

/// The functions of an instance. Throws DeviceError if one is missing.
Api instance_api(PFN_vkGetInstanceProcAddr find, VkInstance instance);

/// Throws DeviceError if a function of the device is missing.
DeviceApi device_api(const Api& api, VkDevice device);

/// Throws DeviceError with the result's name unless the call succeeded.
void check(VkResult result, const char* what);

/// "VK_ERROR_OUT_OF_DEVICE_MEMORY"
std::string name(VkResult result);

}  // namespace similis::gpu::vulkan
