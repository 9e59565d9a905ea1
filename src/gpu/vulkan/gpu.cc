// SPDX-License-Identifier: Apache-2.0
#include "src/gpu/vulkan/gpu.h"

#include <fmt/core.h>

#include <algorithm>

#include "similis/error.hpp"
#include "src/gpu/vulkan/commands.h"
#include "src/gpu/vulkan/kernel.h"

namespace similis::gpu::vulkan {
namespace {

// Memory that is kept for the next call: what a pair of 4K pictures takes in SSIMULACRA 2.
constexpr std::size_t kKeptBytes = std::size_t{1} << 30;
// Kernels read words of 4 B; sizes that repeat are found again.
constexpr std::size_t kGranule = 4096;

VkDevice open_device(const Described& described) {
  const float priority = 1;
  VkDeviceQueueCreateInfo queue{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = described.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceQueueCreateInfo queues[] = {queue, queue};
  queues[1].queueFamilyIndex = described.copy_family;
  VkPhysicalDeviceVulkan12Features newer{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  newer.timelineSemaphore = VK_TRUE;
  VkPhysicalDeviceFeatures features{};
  features.shaderInt64 = VK_TRUE;
  features.shaderFloat64 = described.has_doubles ? VK_TRUE : VK_FALSE;
  VkDeviceCreateInfo create{.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .pNext = &newer};
  create.queueCreateInfoCount = described.copy_family == described.queue_family ? 1 : 2;
  create.pQueueCreateInfos = queues;
  create.pEnabledFeatures = &features;
  VkDevice device = nullptr;
  check(loaded().api.CreateDevice(described.physical, &create, nullptr, &device),
      "the device cannot be opened");
  return device;
}

}  // namespace

Gpu::Gpu(const Described& described, int index)
    : Gpu(described, index, loaded().api, {.device = open_device(described)}) {}

Gpu::Gpu(const Described& described, int index, const Api& vulkan, const VulkanHandles& handles)
    : described_(described),
      index_(index),
      handles_(handles),
      device_(static_cast<VkDevice>(handles.device)),
      api_(device_api(vulkan, device_)),
      queue_(static_cast<VkQueue>(handles.queue)),
      copy_queue_(queue_) {
  if (queue_ == nullptr) {
    api_.GetDeviceQueue(device_, described.queue_family, 0, &queue_);
    api_.GetDeviceQueue(device_, described.copy_family, 0, &copy_queue_);
  }
  vulkan.GetPhysicalDeviceMemoryProperties(described.physical, &memory_);
  VkSemaphoreTypeCreateInfo type{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  const VkSemaphoreCreateInfo semaphore{
      .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
  for (VkSemaphore* const made : {&timeline_, &copy_timeline_}) {
    check(api_.CreateSemaphore(device_, &semaphore, nullptr, made), "a semaphore cannot be made");
  }
  kernels_ = std::make_unique<KernelCache>(*this);
}

Gpu::~Gpu() {
  // Not wait(): a driver's thread may still hold a semaphore that it has just signalled (llvmpipe,
  // Mesa 22.3.6, which then hangs or aborts). Work that failed is over as well.
  lock_queue(handles_.lock_queue);
  api_.QueueWaitIdle(queue_);
  lock_queue(handles_.unlock_queue);
  for (const std::unique_ptr<Slot>& slot : slots_) slot->destroy(*this);
  kernels_.reset();
  for (const auto& [handle, buffer] : buffers_) destroy(buffer);
  for (const VkSemaphore made : {timeline_, copy_timeline_})
    api_.DestroySemaphore(device_, made, nullptr);
}

void Gpu::destroy(const Buffer& buffer) {
  api_.DestroyBuffer(device_, buffer.handle, nullptr);
  api_.FreeMemory(device_, buffer.memory, nullptr);
}

const Arithmetic& Gpu::arithmetic() {
  std::call_once(probed_, [this] { arithmetic_ = probe(*this); });
  return arithmetic_;
}

const Arithmetic& Gpu::exact_arithmetic(const char* operation) {
  const Arithmetic& found = arithmetic();
  if (!found.problem.empty()) {
    throw DeviceError(fmt::format("{}: vulkan:{} is {}, and {}", operation, index_,
        described_.properties.deviceName, found.problem));
  }
  return found;
}

bool Gpu::make(std::size_t bytes, bool of_host, Buffer& buffer) {
  buffer.bytes = (std::max<std::size_t>(bytes, 1) + kGranule - 1) / kGranule * kGranule;
  VkBufferCreateInfo create{.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  create.size = buffer.bytes;
  create.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  const std::uint32_t families[] = {described_.queue_family, described_.copy_family};
  if (families[0] != families[1]) {
    create.sharingMode = VK_SHARING_MODE_CONCURRENT;
    create.queueFamilyIndexCount = 2;
    create.pQueueFamilyIndices = families;
  }
  if (api_.CreateBuffer(device_, &create, nullptr, &buffer.handle) != VK_SUCCESS) return false;
  VkMemoryRequirements needs;
  api_.GetBufferMemoryRequirements(device_, buffer.handle, &needs);
  constexpr VkMemoryPropertyFlags kCoherent =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  // The first type of memory that has all of the first flags; else of the second.
  constexpr VkMemoryPropertyFlags kCached = kCoherent | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  const VkMemoryPropertyFlags wanted[] = {of_host ? kCached : kLocal, of_host ? kCoherent : 0};
  for (const VkMemoryPropertyFlags flags : wanted) {
    for (std::uint32_t type = 0; type < memory_.memoryTypeCount; ++type) {
      if ((needs.memoryTypeBits >> type & 1) == 0) continue;
      if ((memory_.memoryTypes[type].propertyFlags & flags) != flags) continue;
      VkMemoryAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
      allocate.allocationSize = needs.size;
      allocate.memoryTypeIndex = type;
      if (api_.AllocateMemory(device_, &allocate, nullptr, &buffer.memory) != VK_SUCCESS) continue;
      check(api_.BindBufferMemory(device_, buffer.handle, buffer.memory, 0),
          "memory cannot be bound to a buffer");
      if (of_host)
        check(api_.MapMemory(device_, buffer.memory, 0, VK_WHOLE_SIZE, 0, &buffer.mapped),
            "memory cannot be mapped");
      return true;
    }
  }
  api_.DestroyBuffer(device_, buffer.handle, nullptr);
  return false;
}

void Gpu::destroy_oldest_free() {
  const Buffer& oldest = *free_.front();
  wait(oldest.last_use);
  destroy(oldest);
  free_bytes_ -= oldest.bytes;
  free_.erase(free_.begin());
  buffers_.erase(oldest.handle);
}

VkBuffer Gpu::allocate(std::size_t bytes, Ready ready) {
  const std::lock_guard lock(allocating_);
  // The smallest that is large enough and not half empty. It may still be in use by submitted work,
  // which runs before what is submitted from now on, but not before copies.
  const std::uint64_t latest = ready == Ready::now ? done() : UINT64_MAX;
  auto best = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const std::size_t size = (*it)->bytes;
    if (size < bytes || size / 2 > std::max(bytes, kGranule)) continue;
    if ((*it)->last_use > latest) continue;
    if (best == free_.end() || size < (*best)->bytes) best = it;
  }
  if (best != free_.end()) {
    Buffer* const buffer = *best;
    free_.erase(best);
    free_bytes_ -= buffer->bytes;
    return buffer->handle;
  }
  Buffer made;
  while (!make(bytes, false, made)) {
    if (free_.empty()) return nullptr;
    destroy_oldest_free();  // the memory that is kept may be what is missing
  }
  return buffers_.emplace(made.handle, made).first->first;
}

void Gpu::release(VkBuffer buffer) {
  const std::lock_guard lock(allocating_);
  Buffer& released = buffers_.at(buffer);
  released.last_use = submitted_;
  free_.push_back(&released);
  free_bytes_ += released.bytes;
  while (free_bytes_ > kKeptBytes) destroy_oldest_free();
}

Buffer Gpu::host_buffer(std::size_t bytes) {
  Buffer buffer;
  if (!make(bytes, true, buffer)) {
    throw DeviceError(
        fmt::format("vulkan:{}: there are no {} bytes of memory left for copies", index_, bytes));
  }
  return buffer;
}

std::uint64_t Gpu::submit(VkCommandBuffer commands, VkCommandBuffer copies) {
  const std::lock_guard lock(submitting_);
  const auto queue = [&](VkQueue to, const VkCommandBuffer& work, const VkSemaphore& signal,
                         std::uint64_t number, std::uint64_t copies_before) {
    VkTimelineSemaphoreSubmitInfo counts{.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
    counts.signalSemaphoreValueCount = 1;
    counts.pSignalSemaphoreValues = &number;
    VkSubmitInfo info{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .pNext = &counts};
    info.commandBufferCount = 1;
    info.pCommandBuffers = &work;
    info.signalSemaphoreCount = 1;
    info.pSignalSemaphores = &signal;
    if (copies_before > 0) {
      counts.waitSemaphoreValueCount = info.waitSemaphoreCount = 1;
      counts.pWaitSemaphoreValues = &copies_before;
      info.pWaitSemaphores = &copy_timeline_;
      info.pWaitDstStageMask = &kStages;
    }
    lock_queue(handles_.lock_queue);
    const VkResult result = api_.QueueSubmit(to, 1, &info, nullptr);
    lock_queue(handles_.unlock_queue);
    check(result, "work cannot be submitted");
  };
  if (copies != nullptr) {
    queue(copy_queue_, copies, copy_timeline_, copies_submitted_ + 1, 0);
    ++copies_submitted_;
  }
  const std::uint64_t number = submitted_ + 1;
  queue(queue_, commands, timeline_, number, copies == nullptr ? 0 : copies_submitted_);
  submitted_ = number;
  return number;
}

void Gpu::wait(std::uint64_t submission) {
  VkSemaphoreWaitInfo info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
  info.semaphoreCount = 1;
  info.pSemaphores = &timeline_;
  info.pValues = &submission;
  check(api_.WaitSemaphores(device_, &info, UINT64_MAX), "submitted work failed");
}

std::uint64_t Gpu::done() {
  std::uint64_t number = 0;
  check(api_.GetSemaphoreCounterValue(device_, timeline_, &number), "submitted work failed");
  return number;
}

std::unique_ptr<Slot> Gpu::take_slot() {
  constexpr std::size_t kMostSlots = 8;  // beyond, a caller waits for its oldest work
  const std::lock_guard lock(slots_mutex_);
  if (!slots_.empty() && (slots_.size() >= kMostSlots || slots_.front()->done_at <= done())) {
    std::unique_ptr<Slot> slot = std::move(slots_.front());
    slots_.erase(slots_.begin());
    wait(slot->done_at);
    slot->reset(*this);
    return slot;
  }
  return std::make_unique<Slot>(*this);
}

void Gpu::give_back(std::unique_ptr<Slot> slot) {
  const std::lock_guard lock(slots_mutex_);
  slots_.push_back(std::move(slot));
}

}  // namespace similis::gpu::vulkan
