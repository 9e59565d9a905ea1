// SPDX-License-Identifier: Apache-2.0
#include "src/gpu/vulkan/api.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include "similis/error.hpp"

namespace similis::gpu::vulkan {
namespace {

constexpr const char* kLoader = "libvulkan.so.1";

Loaded load() {
  const PFN_vkGetInstanceProcAddr find = loader_function();
  if (find == nullptr) return {.problem = no_loader()};
  const auto instance_version =
      reinterpret_cast<PFN_vkEnumerateInstanceVersion>(find(nullptr, "vkEnumerateInstanceVersion"));
  std::uint32_t version = VK_API_VERSION_1_0;
  if (instance_version != nullptr) instance_version(&version);
  if (version < VK_API_VERSION_1_2)
    return {.problem = "the Vulkan loader is older than Vulkan 1.2"};
  // 1.2 even of newer devices: newer rules let drivers look at modules in other ways.
  VkApplicationInfo application{.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.pApplicationName = "similis";
  application.apiVersion = VK_API_VERSION_1_2;
  VkInstanceCreateInfo create{.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  create.pApplicationInfo = &application;
  Loaded result;
  const VkResult made = reinterpret_cast<PFN_vkCreateInstance>(find(nullptr, "vkCreateInstance"))(
      &create, nullptr, &result.instance);
  if (made == VK_ERROR_INCOMPATIBLE_DRIVER) return {.problem = "the Vulkan loader finds no driver"};
  if (made != VK_SUCCESS) return {.problem = "the Vulkan loader gives no instance: " + name(made)};
  try {
    result.api = instance_api(find, result.instance);
  } catch (const DeviceError& error) {
    result.problem = error.what();
  }
  return result;
}

}  // namespace

PFN_vkGetInstanceProcAddr loader_function() {
  static void* const library = dlopen(kLoader, RTLD_NOW | RTLD_LOCAL);
  return library == nullptr
             ? nullptr
             : reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
}

std::string no_loader() {
  return fmt::format(
      "there is no Vulkan loader ({}); install libvulkan1 and the GPU's driver", kLoader);
}

Api instance_api(PFN_vkGetInstanceProcAddr find, VkInstance instance) {
  Api result;
#define SIMILIS_VULKAN_FIND(name)                                           \
  result.name = reinterpret_cast<PFN_vk##name>(find(instance, "vk" #name)); \
  if (result.name == nullptr)                                               \
    throw DeviceError(                                                      \
        "vulkan: the instance has no vk" #name "; it must be made for Vulkan 1.2 or later");
  SIMILIS_VULKAN_INSTANCE(SIMILIS_VULKAN_FIND)
#undef SIMILIS_VULKAN_FIND
  return result;
}

const Loaded& loaded() {
  // Never unloaded: a driver may still run threads while the process ends.
  static const Loaded& result = *new Loaded(load());
  return result;
}

DeviceApi device_api(const Api& api, VkDevice device) {
  DeviceApi result;
#define SIMILIS_VULKAN_FIND(name)                                                          \
  result.name = reinterpret_cast<PFN_vk##name>(api.GetDeviceProcAddr(device, "vk" #name)); \
  if (result.name == nullptr)                                                              \
    throw DeviceError("vulkan: the device has no vk" #name "; it must be of Vulkan 1.2 or later");
  SIMILIS_VULKAN_DEVICE(SIMILIS_VULKAN_FIND)
#undef SIMILIS_VULKAN_FIND
  return result;
}

std::string name(VkResult result) {
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY: return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY: return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VK_ERROR_INITIALIZATION_FAILED: return "VK_ERROR_INITIALIZATION_FAILED";
    case VK_ERROR_DEVICE_LOST: return "VK_ERROR_DEVICE_LOST";
    case VK_ERROR_FEATURE_NOT_PRESENT: return "VK_ERROR_FEATURE_NOT_PRESENT";
    case VK_ERROR_INCOMPATIBLE_DRIVER: return "VK_ERROR_INCOMPATIBLE_DRIVER";
    case VK_ERROR_TOO_MANY_OBJECTS: return "VK_ERROR_TOO_MANY_OBJECTS";
    default: return fmt::format("VkResult {}", static_cast<int>(result));
  }
}

void check(VkResult result, const char* what) {
  if (result != VK_SUCCESS) throw DeviceError(fmt::format("vulkan: {}: {}", what, name(result)));
}

}  // namespace similis::gpu::vulkan
