// SPDX-License-Identifier: Apache-2.0
// The GPUs that are open, by number: those of the loader, in its order, and those that callers
// handed over, from 1024 on.
#include <fmt/core.h>

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "similis/vulkan.hpp"
#include "src/core/require.h"
#include "src/gpu/vulkan/gpu.h"

namespace similis::gpu::vulkan {
namespace {

constexpr int kFirstHandedOver = 1024;

struct Open {
  std::mutex mutex;
  std::map<int, std::unique_ptr<Gpu>> gpus;
};

Open& open() {
  // Never closed: the last tensors may go while the process ends and the driver with it.
  static Open& result = *new Open;
  return result;
}

void require_handles(const VulkanHandles& given) {
  require((given.lock_queue == nullptr) == (given.unlock_queue == nullptr),
      "vulkan: handles has one of lock_queue and unlock_queue; give both or none");
  const std::pair<const char*, void*> needed[] = {{"instance", given.instance},
      {"device", given.device}, {"queue", given.queue}, {"physical_device", given.physical_device}};
  for (const auto& [name, handle] : needed)
    require(handle != nullptr, "vulkan: handles.{} is null; all four handles are needed", name);
}

// Throws DeviceError if the device cannot run the kernels as the caller opened it.
Described examined(const Api& api, const VulkanHandles& given) {
  Described described{.physical = static_cast<VkPhysicalDevice>(given.physical_device)};
  described.queue_family = described.copy_family = given.queue_family;
  const std::string lack = describe(api, described);
  if (!lack.empty()) {
    throw DeviceError(fmt::format("vulkan: {} lacks {}", described.properties.deviceName, lack));
  }
  const std::vector<VkQueueFamilyProperties> families = queue_families(api, described.physical);
  require(given.queue_family < families.size(),
      "vulkan: handles.queue_family is {}; it must be below {}, the number of families",
      given.queue_family, families.size());
  require((families[given.queue_family].queueFlags & VK_QUEUE_COMPUTE_BIT) != 0,
      "vulkan: handles.queue_family is {}, and its queues do not compute; take one with "
      "VK_QUEUE_COMPUTE_BIT",
      given.queue_family);
  require(described.has_doubles || !given.has_float64,
      "vulkan: handles.has_float64 is set, and {} has no doubles", described.properties.deviceName);
  described.has_doubles = given.has_float64;
  return described;
}

}  // namespace

Gpu& opened(int index) {
  Open& all = open();
  const std::lock_guard lock(all.mutex);
  const auto found = all.gpus.find(index);
  if (found != all.gpus.end()) return *found->second;
  if (index >= kFirstHandedOver)
    throw DeviceError(fmt::format("vulkan:{} was given back to its owner", index));
  const std::vector<Described>& there = devices();
  if (index < 0 || static_cast<std::size_t>(index) >= there.size()) {
    throw DeviceError(fmt::format("vulkan:{} does not exist: {}", index, describe_devices()));
  }
  auto gpu = std::make_unique<Gpu>(there[static_cast<std::size_t>(index)], index);
  return *all.gpus.emplace(index, std::move(gpu)).first->second;
}

bool exists(int index) {
  if (index < kFirstHandedOver)
    return index >= 0 && static_cast<std::size_t>(index) < devices().size();
  Open& all = open();
  const std::lock_guard lock(all.mutex);
  return all.gpus.count(index) > 0;
}

Gpu& handed_over(const VulkanHandles& handles) {
  require_handles(handles);
  const PFN_vkGetInstanceProcAddr find =
      handles.get_instance_proc_addr == nullptr
          ? loader_function()
          : reinterpret_cast<PFN_vkGetInstanceProcAddr>(handles.get_instance_proc_addr);
  if (find == nullptr) throw DeviceError("vulkan: " + no_loader());
  const Api api = instance_api(find, static_cast<VkInstance>(handles.instance));
  const Described described = examined(api, handles);
  Open& all = open();
  const std::lock_guard lock(all.mutex);
  for (const auto& [index, gpu] : all.gpus) {
    require(gpu->queue() != handles.queue,
        "vulkan: the queue is that of vulkan:{}; copy its VulkanDevice, or close it first", index);
  }
  // A number is not used again, so that a tensor of a device that is gone is known.
  static int next = kFirstHandedOver;
  const int index = next;
  auto gpu = std::make_unique<Gpu>(described, index, api, handles);
  ++next;
  return *all.gpus.emplace(index, std::move(gpu)).first->second;
}

void give_back_device(int index) {
  require(index >= kFirstHandedOver,
      "vulkan: vulkan:{} was opened by similis, and stays open until the process ends", index);
  Open& all = open();
  const std::lock_guard lock(all.mutex);
  all.gpus.erase(index);
}

}  // namespace similis::gpu::vulkan
