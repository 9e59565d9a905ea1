// SPDX-License-Identifier: Apache-2.0
#include "src/gpu/vulkan/devices.h"

#include "src/core/joined.h"

namespace similis::gpu::vulkan {

std::string describe(const Api& api, Described& device) {
  VkPhysicalDeviceDriverProperties driver{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
  VkPhysicalDeviceProperties2 properties{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &driver};
  api.GetPhysicalDeviceProperties2(device.physical, &properties);
  device.properties = properties.properties;
  if (device.properties.apiVersion < VK_API_VERSION_1_2) return "Vulkan 1.2";
  device.driver = fmt::format("{} {}", driver.driverName, driver.driverInfo);
  VkPhysicalDeviceVulkan12Features newer{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceFeatures2 features{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &newer};
  api.GetPhysicalDeviceFeatures2(device.physical, &features);
  if (!features.features.shaderInt64) return "integers of 64 bits";
  if (!newer.timelineSemaphore) return "timeline semaphores";
  device.has_doubles = features.features.shaderFloat64;
  return {};
}

std::vector<VkQueueFamilyProperties> queue_families(const Api& api, VkPhysicalDevice device) {
  std::uint32_t count = 0;
  api.GetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  api.GetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  return families;
}

namespace {

// Describes a device that similis opens itself, and chooses its queues.
std::string describe_with_queues(const Api& api, Described& device) {
  std::string lack = describe(api, device);
  if (!lack.empty()) return lack;
  const std::vector<VkQueueFamilyProperties> families = queue_families(api, device.physical);
  const auto count = static_cast<std::uint32_t>(families.size());
  const auto first = [&](VkQueueFlags wanted, VkQueueFlags unwanted) {
    std::uint32_t i = 0;
    while (i < count && ((families[i].queueFlags & wanted) != wanted ||
                            (families[i].queueFlags & unwanted) != 0))
      ++i;
    return i;
  };
  device.queue_family = first(VK_QUEUE_COMPUTE_BIT, 0);
  if (device.queue_family == count) return "a queue for compute";
  constexpr VkQueueFlags kVideo = 0x60;  // decoding and encoding, by the specification's numbers
  constexpr VkQueueFlags kMore = VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT | kVideo;
  device.copy_family = first(VK_QUEUE_TRANSFER_BIT, kMore);
  if (device.copy_family == count) device.copy_family = device.queue_family;
  return {};
}

struct Found {
  std::vector<Described> devices;
  std::string problem;  // the reason why there are none
};

Found find_devices() {
  const Loaded& vulkan = loaded();
  Found found{.devices = {}, .problem = vulkan.problem};
  if (!found.problem.empty()) return found;
  std::uint32_t count = 0;
  VkResult result = vulkan.api.EnumeratePhysicalDevices(vulkan.instance, &count, nullptr);
  std::vector<VkPhysicalDevice> all(count);
  if (result == VK_SUCCESS && count > 0)
    result = vulkan.api.EnumeratePhysicalDevices(vulkan.instance, &count, all.data());
  if (result != VK_SUCCESS || count == 0) {
    found.problem = "the Vulkan loader finds no device";
    if (result != VK_SUCCESS) found.problem += ": " + name(result);
    return found;
  }
  for (const VkPhysicalDevice physical : all) {
    Described device{.physical = physical};
    const std::string lack = describe_with_queues(vulkan.api, device);
    if (lack.empty()) {
      found.devices.push_back(device);
    } else if (found.problem.empty()) {
      found.problem = fmt::format("{} lacks {}", device.properties.deviceName, lack);
    }
  }
  return found;
}

const Found& found_devices() {
  static const Found& found = *new Found(find_devices());
  return found;
}

}  // namespace

const std::vector<Described>& devices() { return found_devices().devices; }

std::string describe_device(int index) {
  const Described& device = devices().at(static_cast<std::size_t>(index));
  return fmt::format("vulkan:{} is {} ({})", index, device.properties.deviceName, device.driver);
}

std::string describe_devices() {
  if (devices().empty()) return "no Vulkan device can be used: " + found_devices().problem;
  std::vector<std::string> texts;
  for (int i = 0; i < static_cast<int>(devices().size()); ++i) texts.push_back(describe_device(i));
  return joined(texts, ", ");
}

}  // namespace similis::gpu::vulkan
