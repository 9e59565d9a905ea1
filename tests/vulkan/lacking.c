/* SPDX-License-Identifier: Apache-2.0
 * A Vulkan loader of which something is missing: it stands before the machine's own, whose path is
 * VULKAN_LOADER, and VULKAN_LACKS says what its devices lack. tests/vulkan_lacks_test.py builds it.
 * A device is refused if a feature is asked for that is not among those that similis needs.
 */
#define VK_NO_PROTOTYPES
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

static PFN_vkGetInstanceProcAddr next_function;
static VkInstance the_instance;

static int lacks(const char* what) {
  const char* const lacking = getenv("VULKAN_LACKS");
  return lacking != NULL && strcmp(lacking, what) == 0;
}

#define NEXT(name) ((PFN_##name)next_function(the_instance, #name))

static VkResult create_instance(const VkInstanceCreateInfo* info,
    const VkAllocationCallbacks* allocator, VkInstance* instance) {
  const VkResult result =
      ((PFN_vkCreateInstance)next_function(NULL, "vkCreateInstance"))(info, allocator, instance);
  the_instance = *instance;
  return result;
}

static VkResult instance_version(uint32_t* version) {
  *version = lacks("loader 1.2") ? VK_API_VERSION_1_1 : VK_API_VERSION_1_3;
  return VK_SUCCESS;
}

static VkResult physical_devices(VkInstance instance, uint32_t* count, VkPhysicalDevice* devices) {
  if (lacks("devices")) {
    *count = 0;
    return VK_SUCCESS;
  }
  if (lacks("working devices")) return VK_ERROR_INITIALIZATION_FAILED;
  return NEXT(vkEnumeratePhysicalDevices)(instance, count, devices);
}

static void properties(VkPhysicalDevice device, VkPhysicalDeviceProperties2* found) {
  NEXT(vkGetPhysicalDeviceProperties2)(device, found);
  if (lacks("Vulkan 1.2")) found->properties.apiVersion = VK_API_VERSION_1_1;
}

/* On every device: no f16, no storage and no arithmetic of 8 or 16 bits. */
static void features(VkPhysicalDevice device, VkPhysicalDeviceFeatures2* found) {
  NEXT(vkGetPhysicalDeviceFeatures2)(device, found);
  found->features.shaderInt16 = VK_FALSE;
  if (lacks("integers of 64 bits")) found->features.shaderInt64 = VK_FALSE;
  if (lacks("doubles")) found->features.shaderFloat64 = VK_FALSE;
  for (VkBaseOutStructure* each = found->pNext; each != NULL; each = each->pNext) {
    if (each->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES) continue;
    VkPhysicalDeviceVulkan12Features* const newer = (VkPhysicalDeviceVulkan12Features*)each;
    newer->shaderFloat16 = newer->shaderInt8 = newer->storageBuffer8BitAccess = VK_FALSE;
    if (lacks("timeline semaphores")) newer->timelineSemaphore = VK_FALSE;
  }
}

static void queue_families(
    VkPhysicalDevice device, uint32_t* count, VkQueueFamilyProperties* families) {
  NEXT(vkGetPhysicalDeviceQueueFamilyProperties)(device, count, families);
  for (uint32_t i = 0; families != NULL && lacks("a queue for compute") && i < *count; ++i)
    families[i].queueFlags &= ~(VkQueueFlags)VK_QUEUE_COMPUTE_BIT;
}

/* The features that are asked for, beyond those that every device here has. */
static int asks_for_more(const VkDeviceCreateInfo* info) {
  VkPhysicalDeviceFeatures asked = {0};
  VkPhysicalDeviceVulkan12Features newer = {0};
  if (info->pEnabledFeatures != NULL) asked = *info->pEnabledFeatures;
  for (const VkBaseInStructure* each = info->pNext; each != NULL; each = each->pNext) {
    if (each->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES) return 1;
    newer = *(const VkPhysicalDeviceVulkan12Features*)each;
  }
  if (asked.shaderFloat64 && lacks("doubles")) return 1;
  asked.shaderInt64 = asked.shaderFloat64 = VK_FALSE;
  newer.timelineSemaphore = VK_FALSE;
  newer.sType = 0;
  newer.pNext = NULL;
  const VkPhysicalDeviceFeatures no_more = {0};
  const VkPhysicalDeviceVulkan12Features no_newer = {0};
  return memcmp(&asked, &no_more, sizeof asked) != 0 ||
         memcmp(&newer, &no_newer, sizeof newer) != 0 || info->enabledExtensionCount != 0;
}

static VkResult create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
    const VkAllocationCallbacks* allocator, VkDevice* device) {
  if (lacks("memory")) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  if (asks_for_more(info)) return VK_ERROR_FEATURE_NOT_PRESENT;
  return NEXT(vkCreateDevice)(physical, info, allocator, device);
}

__attribute__((visibility("default"))) PFN_vkVoidFunction vkGetInstanceProcAddr(
    VkInstance instance, const char* name) {
  if (next_function == NULL) {
    void* const loader = dlopen(getenv("VULKAN_LOADER"), RTLD_NOW | RTLD_LOCAL);
    if (loader == NULL) {
      fprintf(stderr, "%s\n", dlerror());
      abort();
    }
    next_function = (PFN_vkGetInstanceProcAddr)dlsym(loader, "vkGetInstanceProcAddr");
  }
  const struct {
    const char* name;
    PFN_vkVoidFunction function;
  } own[] = {{"vkCreateInstance", (PFN_vkVoidFunction)create_instance},
      {"vkEnumerateInstanceVersion", (PFN_vkVoidFunction)instance_version},
      {"vkEnumeratePhysicalDevices", (PFN_vkVoidFunction)physical_devices},
      {"vkGetPhysicalDeviceProperties2", (PFN_vkVoidFunction)properties},
      {"vkGetPhysicalDeviceFeatures2", (PFN_vkVoidFunction)features},
      {"vkGetPhysicalDeviceQueueFamilyProperties", (PFN_vkVoidFunction)queue_families},
      {"vkCreateDevice", (PFN_vkVoidFunction)create_device}};
  for (size_t i = 0; i < sizeof own / sizeof *own; ++i)
    if (strcmp(name, own[i].name) == 0) return own[i].function;
  return next_function(instance, name);
}
