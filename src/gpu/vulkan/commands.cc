// SPDX-License-Identifier: Apache-2.0
#include "src/gpu/vulkan/commands.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "similis/error.hpp"

namespace similis::gpu::vulkan {
namespace {

constexpr std::uint32_t kSetsOfAPool = 64;
constexpr std::size_t kStagingBytes = std::size_t{1} << 20;  // of a slot's first staging buffer
constexpr std::size_t kAlignment = 256;

void begin(const DeviceApi& api, VkCommandBuffer commands) {
  VkCommandBufferBeginInfo info{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  check(api.BeginCommandBuffer(commands, &info), "commands cannot be recorded");
}

}  // namespace

Slot::Slot(Gpu& gpu) {
  const auto make = [&](std::uint32_t family, Recording& made) {
    VkCommandPoolCreateInfo create{.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    create.queueFamilyIndex = family;
    check(gpu.api().CreateCommandPool(gpu.device(), &create, nullptr, &made.pool),
        "a command pool cannot be made");
    VkCommandBufferAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    allocate.commandPool = made.pool;
    allocate.commandBufferCount = 1;
    check(gpu.api().AllocateCommandBuffers(gpu.device(), &allocate, &made.buffer),
        "a command buffer cannot be made");
  };
  make(gpu.described().queue_family, commands);
  make(gpu.described().copy_family, copies);
}

void Slot::reset(Gpu& gpu) {
  for (const Recording& each : {commands, copies}) {
    check(gpu.api().ResetCommandPool(gpu.device(), each.pool, 0), "commands cannot be reset");
  }
  has_copies = false;
  for (const VkDescriptorPool pool : pools)
    check(gpu.api().ResetDescriptorPool(gpu.device(), pool, 0), "arguments cannot be reset");
  sets = 0;
  for (Staging& each : staging) each.used = 0;
}

void Slot::destroy(Gpu& gpu) {
  const DeviceApi& api = gpu.api();
  for (const Recording& each : {commands, copies})
    api.DestroyCommandPool(gpu.device(), each.pool, nullptr);
  for (const VkDescriptorPool pool : pools) api.DestroyDescriptorPool(gpu.device(), pool, nullptr);
  for (const Staging& each : staging) gpu.destroy(each.buffer);
}

Commands::Commands(Gpu& gpu) : gpu_(gpu), slot_(gpu.take_slot()) {
  begin(gpu.api(), slot_->commands.buffer);
  order(VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);  // a caller's own work may be anything
}

Commands::~Commands() {
  release_workspaces();
  if (slot_ != nullptr) gpu_.give_back(std::move(slot_));
}

// Makes what ran before visible to what comes, of this call or another, host included.
void Commands::order(VkPipelineStageFlags after) {
  VkMemoryBarrier barrier{.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  barrier.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
  gpu_.api().CmdPipelineBarrier(slot_->commands.buffer, after, kStages | VK_PIPELINE_STAGE_HOST_BIT,
      0, 1, &barrier, 0, nullptr, 0, nullptr);
}

VkBuffer Commands::workspace(std::size_t bytes, Gpu::Ready ready) {
  const VkBuffer buffer = gpu_.allocate(bytes, ready);
  if (buffer == nullptr) {
    throw DeviceError(
        fmt::format("vulkan:{}: there are no {} bytes of memory left", gpu_.index(), bytes));
  }
  workspaces_.push_back(buffer);
  return buffer;
}

VkBuffer Commands::workspace(std::size_t bytes) { return workspace(bytes, Gpu::Ready::in_order); }

void Commands::release_workspaces() {
  for (const VkBuffer buffer : workspaces_) gpu_.release(buffer);
  workspaces_.clear();
}

VkBuffer Commands::workspace_of(const void* from, std::size_t bytes) {
  const VkBuffer buffer = workspace(bytes);
  if (bytes > 0) std::memcpy(upload(buffer, 0, bytes), from, bytes);
  return buffer;
}

Commands::Place Commands::staging(std::size_t bytes) {
  for (Slot::Staging& each : slot_->staging) {
    if (each.buffer.bytes - each.used < bytes) continue;
    const std::size_t at = each.used;
    each.used =
        std::min(each.buffer.bytes, (at + bytes + kAlignment - 1) / kAlignment * kAlignment);
    return {each.buffer.handle, at, static_cast<std::byte*>(each.buffer.mapped) + at};
  }
  slot_->staging.push_back({.buffer = gpu_.host_buffer(std::max(bytes, kStagingBytes))});
  return staging(bytes);
}

Commands::Input Commands::input(std::size_t bytes) {
  const VkBuffer buffer = workspace(bytes, Gpu::Ready::now);
  const Place from = staging(bytes);
  if (!std::exchange(slot_->has_copies, true)) begin(gpu_.api(), slot_->copies.buffer);
  const VkBufferCopy copy{from.offset, 0, bytes};
  if (bytes > 0) gpu_.api().CmdCopyBuffer(slot_->copies.buffer, from.buffer, buffer, 1, &copy);
  return {buffer, from.mapped};
}

void* Commands::upload(VkBuffer to, std::size_t offset_bytes, std::size_t bytes) {
  const Place from = staging(bytes);
  const VkBufferCopy copy{from.offset, offset_bytes, bytes};
  if (bytes > 0) gpu_.api().CmdCopyBuffer(slot_->commands.buffer, from.buffer, to, 1, &copy);
  order();
  return from.mapped;
}

const void* Commands::download(VkBuffer from, std::size_t offset_bytes, std::size_t bytes) {
  const Place to = staging(bytes);
  const VkBufferCopy copy{offset_bytes, to.offset, bytes};
  if (bytes > 0) gpu_.api().CmdCopyBuffer(slot_->commands.buffer, from, to.buffer, 1, &copy);
  order();
  return to.mapped;
}

void Commands::clear(VkBuffer buffer, std::size_t bytes) {
  gpu_.api().CmdFillBuffer(slot_->commands.buffer, buffer, 0, bytes, 0);
  order();
}

VkDescriptorSet Commands::take_set() {
  const std::size_t place = slot_->sets++ / kSetsOfAPool;
  if (place == slot_->pools.size()) {
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, kSetsOfAPool * kMostBuffers};
    VkDescriptorPoolCreateInfo create{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    create.maxSets = kSetsOfAPool;
    create.poolSizeCount = 1;
    create.pPoolSizes = &size;
    VkDescriptorPool pool = nullptr;
    check(gpu_.api().CreateDescriptorPool(gpu_.device(), &create, nullptr, &pool),
        "memory for a kernel's arguments cannot be had");
    slot_->pools.push_back(pool);
  }
  const VkDescriptorSetLayout layout = gpu_.kernels().buffers_layout();
  VkDescriptorSetAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  allocate.descriptorPool = slot_->pools[place];
  allocate.descriptorSetCount = 1;
  allocate.pSetLayouts = &layout;
  VkDescriptorSet set = nullptr;
  check(gpu_.api().AllocateDescriptorSets(gpu_.device(), &allocate, &set),
      "a kernel's arguments cannot be set");
  return set;
}

void Commands::run(VkPipeline kernel, std::span<const VkBuffer> buffers, const void* arguments,
    std::uint32_t bytes, const Groups& groups) {
  const DeviceApi& api = gpu_.api();
  const auto* const most = gpu_.limits().maxComputeWorkGroupCount;
  if (groups.x > most[0] || groups.y > most[1] || groups.z > most[2]) {
    throw DeviceError(fmt::format(
        "vulkan:{}: a kernel needs {}×{}×{} workgroups, and the device takes at most {}×{}×{}",
        gpu_.index(), groups.x, groups.y, groups.z, most[0], most[1], most[2]));
  }
  const VkDescriptorSet set = take_set();
  std::vector<VkDescriptorBufferInfo> infos;
  for (const VkBuffer buffer : buffers) infos.push_back({buffer, 0, VK_WHOLE_SIZE});
  VkWriteDescriptorSet write{.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
  write.dstSet = set;
  write.descriptorCount = static_cast<std::uint32_t>(infos.size());
  write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
  write.pBufferInfo = infos.data();
  api.UpdateDescriptorSets(gpu_.device(), 1, &write, 0, nullptr);
  const VkCommandBuffer commands = slot_->commands.buffer;
  const VkPipelineLayout layout = gpu_.kernels().layout();
  api.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel);
  api.CmdBindDescriptorSets(
      commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &set, 0, nullptr);
  api.CmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, bytes, arguments);
  api.CmdDispatch(commands, static_cast<std::uint32_t>(groups.x),
      static_cast<std::uint32_t>(groups.y), static_cast<std::uint32_t>(groups.z));
  order();
}

void Commands::submit() {
  const auto ended = [&](VkCommandBuffer recorded) {
    check(gpu_.api().EndCommandBuffer(recorded), "commands cannot be recorded");
    return recorded;
  };
  slot_->done_at = gpu_.submit(
      ended(slot_->commands.buffer), slot_->has_copies ? ended(slot_->copies.buffer) : nullptr);
  release_workspaces();  // later work waits for this one before it uses them
}

void Commands::wait() { gpu_.wait(slot_->done_at); }

void Commands::finish() {
  submit();
  wait();
}

}  // namespace similis::gpu::vulkan
