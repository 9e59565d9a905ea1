// SPDX-License-Identifier: Apache-2.0
// Devices that a caller opened, as an engine does: their queue, their buffers and their end.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "similis/c/libvmaf_ssim.h"
#include "similis/c/vulkan.h"
#include "similis/error.hpp"
#include "similis/libvmaf_ssim.hpp"
#include "similis/pixel_error.hpp"
#include "similis/ssim.hpp"
#include "src/gpu/vulkan/test_device.h"
#include "tests/c_tensor.h"

namespace similis::gpu::vulkan {
namespace {

// Number of objects that exist, by the name of what makes them: calls that similis makes through
// the functions of this loader are counted.
std::map<std::string, int>& existing() {
  static std::map<std::string, int> result;
  return result;
}
PFN_vkGetDeviceProcAddr next_device_function = nullptr;

#define SIMILIS_COUNTED(X) \
  X(Buffer)                \
  X(Semaphore)             \
  X(CommandPool)           \
  X(DescriptorPool) X(PipelineLayout) X(DescriptorSetLayout) X(PipelineCache) X(ShaderModule)
#define SIMILIS_COUNT(name)                                                                      \
  VkResult VKAPI_CALL create_##name(VkDevice device, const Vk##name##CreateInfo* info,           \
      const VkAllocationCallbacks* callbacks, Vk##name* made) {                                  \
    ++existing()[#name];                                                                         \
    return reinterpret_cast<PFN_vkCreate##name>(next_device_function(device, "vkCreate" #name))( \
        device, info, callbacks, made);                                                          \
  }                                                                                              \
  void VKAPI_CALL destroy_##name(                                                                \
      VkDevice device, Vk##name made, const VkAllocationCallbacks* callbacks) {                  \
    --existing()[#name];                                                                         \
    reinterpret_cast<PFN_vkDestroy##name>(next_device_function(device, "vkDestroy" #name))(      \
        device, made, callbacks);                                                                \
  }
SIMILIS_COUNTED(SIMILIS_COUNT)
#undef SIMILIS_COUNT

VkResult VKAPI_CALL allocate_memory(VkDevice device, const VkMemoryAllocateInfo* info,
    const VkAllocationCallbacks* callbacks, VkDeviceMemory* made) {
  ++existing()["Memory"];
  return reinterpret_cast<PFN_vkAllocateMemory>(next_device_function(device, "vkAllocateMemory"))(
      device, info, callbacks, made);
}
void VKAPI_CALL free_memory(
    VkDevice device, VkDeviceMemory made, const VkAllocationCallbacks* callbacks) {
  --existing()["Memory"];
  reinterpret_cast<PFN_vkFreeMemory>(next_device_function(device, "vkFreeMemory"))(
      device, made, callbacks);
}
VkResult VKAPI_CALL create_pipelines(VkDevice device, VkPipelineCache cache, std::uint32_t count,
    const VkComputePipelineCreateInfo* info, const VkAllocationCallbacks* callbacks,
    VkPipeline* made) {
  ++existing()["Pipeline"];
  return reinterpret_cast<PFN_vkCreateComputePipelines>(next_device_function(
      device, "vkCreateComputePipelines"))(device, cache, count, info, callbacks, made);
}
void VKAPI_CALL destroy_pipeline(
    VkDevice device, VkPipeline made, const VkAllocationCallbacks* callbacks) {
  --existing()["Pipeline"];
  reinterpret_cast<PFN_vkDestroyPipeline>(next_device_function(device, "vkDestroyPipeline"))(
      device, made, callbacks);
}

PFN_vkVoidFunction VKAPI_CALL counted_device_function(VkDevice device, const char* name) {
  const auto own = [](auto* function) { return reinterpret_cast<PFN_vkVoidFunction>(function); };
  const std::map<std::string, PFN_vkVoidFunction> counted = {
#define SIMILIS_OWN(name) \
  {"vkCreate" #name, own(create_##name)}, {"vkDestroy" #name, own(destroy_##name)},
      SIMILIS_COUNTED(SIMILIS_OWN)
#undef SIMILIS_OWN
          {"vkAllocateMemory", own(allocate_memory)},
      {"vkFreeMemory", own(free_memory)}, {"vkCreateComputePipelines", own(create_pipelines)},
      {"vkDestroyPipeline", own(destroy_pipeline)}};
  const auto found = counted.find(name);
  return found == counted.end() ? next_device_function(device, name) : found->second;
}

PFN_vkVoidFunction VKAPI_CALL counted_instance_function(VkInstance instance, const char* name) {
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0)
    return reinterpret_cast<PFN_vkVoidFunction>(counted_device_function);
  return loader_function()(instance, name);
}

// An engine's objects: an instance, a device with a queue, and buffers that the CPU sees.
class CallersDevice : public test::VulkanTest<> {
 protected:
  void SetUp() override {
    VulkanTest::SetUp();
    if (IsSkipped()) return;
    find_ = loader_function();
    const VkApplicationInfo application{.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .pNext = nullptr,
        .pApplicationName = "an engine",
        .applicationVersion = 1,
        .pEngineName = nullptr,
        .engineVersion = 1,
        .apiVersion = VK_API_VERSION_1_2};
    VkInstanceCreateInfo create{.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    create.pApplicationInfo = &application;
    check(reinterpret_cast<PFN_vkCreateInstance>(find_(nullptr, "vkCreateInstance"))(
              &create, nullptr, &instance_),
        "instance");
    vulkan_ = instance_api(find_, instance_);
    next_device_function = vulkan_.GetDeviceProcAddr;
    std::uint32_t one = 1;
    vulkan_.EnumeratePhysicalDevices(instance_, &one, &physical_);
    const std::vector<VkQueueFamilyProperties> families = queue_families(vulkan_, physical_);
    while ((families[family_].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) ++family_;
    const float priority = 1;
    VkDeviceQueueCreateInfo queue{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    queue.queueFamilyIndex = family_;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    VkPhysicalDeviceVulkan12Features newer{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    newer.timelineSemaphore = VK_TRUE;
    VkPhysicalDeviceFeatures features{};
    features.shaderInt64 = VK_TRUE;
    features.shaderFloat64 = has_float64_ = devices().front().has_doubles;
    VkDeviceCreateInfo made{.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .pNext = &newer};
    made.queueCreateInfoCount = 1;
    made.pQueueCreateInfos = &queue;
    made.pEnabledFeatures = &features;
    check(vulkan_.CreateDevice(physical_, &made, nullptr, &device_), "device");
    api_ = device_api(vulkan_, device_);
    api_.GetDeviceQueue(device_, family_, 0, &queue_);
    existing().clear();
  }
  void TearDown() override {
    if (device_ == nullptr) return;
    wait();
    for (const Buffer& each : buffers_) {
      api_.DestroyBuffer(device_, each.handle, nullptr);
      api_.FreeMemory(device_, each.memory, nullptr);
    }
    if (pool_ != nullptr) api_.DestroyCommandPool(device_, pool_, nullptr);
    reinterpret_cast<PFN_vkDestroyDevice>(vulkan_.GetDeviceProcAddr(device_, "vkDestroyDevice"))(
        device_, nullptr);
    reinterpret_cast<PFN_vkDestroyInstance>(find_(instance_, "vkDestroyInstance"))(
        instance_, nullptr);
  }

  VulkanHandles handles() const {
    return {.instance = instance_,
        .physical_device = physical_,
        .device = device_,
        .queue = queue_,
        .queue_family = family_,
        .has_float64 = has_float64_};
  }

  // A buffer that the CPU sees, as the engine's own.
  const Buffer& buffer(std::size_t bytes) {
    Buffer made;
    VkBufferCreateInfo create{.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    create.size = bytes;
    create.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                   VK_BUFFER_USAGE_TRANSFER_SRC_BIT;
    check(api_.CreateBuffer(device_, &create, nullptr, &made.handle), "buffer");
    VkMemoryRequirements needs;
    api_.GetBufferMemoryRequirements(device_, made.handle, &needs);
    VkPhysicalDeviceMemoryProperties memory;
    vulkan_.GetPhysicalDeviceMemoryProperties(physical_, &memory);
    constexpr VkMemoryPropertyFlags kWanted =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    VkMemoryAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    allocate.allocationSize = needs.size;
    while ((needs.memoryTypeBits >> allocate.memoryTypeIndex & 1) == 0 ||
           (memory.memoryTypes[allocate.memoryTypeIndex].propertyFlags & kWanted) != kWanted)
      ++allocate.memoryTypeIndex;
    check(api_.AllocateMemory(device_, &allocate, nullptr, &made.memory), "memory");
    check(api_.BindBufferMemory(device_, made.handle, made.memory, 0), "binding");
    check(api_.MapMemory(device_, made.memory, 0, VK_WHOLE_SIZE, 0, &made.mapped), "map");
    buffers_.push_back(made);
    return buffers_.back();
  }

  // Submits a command of the engine's to the queue, and does not wait.
  void submit(const std::function<void(VkCommandBuffer)>& record) {
    if (pool_ == nullptr) {
      VkCommandPoolCreateInfo create{.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
      create.queueFamilyIndex = family_;
      check(api_.CreateCommandPool(device_, &create, nullptr, &pool_), "pool");
    }
    VkCommandBufferAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    allocate.commandPool = pool_;
    allocate.commandBufferCount = 1;
    VkCommandBuffer commands = nullptr;
    check(api_.AllocateCommandBuffers(device_, &allocate, &commands), "commands");
    const VkCommandBufferBeginInfo begin{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    check(api_.BeginCommandBuffer(commands, &begin), "begin");
    record(commands);
    check(api_.EndCommandBuffer(commands), "end");
    VkSubmitInfo info{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO};
    info.commandBufferCount = 1;
    info.pCommandBuffers = &commands;
    check(api_.QueueSubmit(queue_, 1, &info, nullptr), "submission");
  }
  void wait() {
    check(reinterpret_cast<PFN_vkQueueWaitIdle>(
              vulkan_.GetDeviceProcAddr(device_, "vkQueueWaitIdle"))(queue_),
        "wait");
  }

  PFN_vkGetInstanceProcAddr find_ = nullptr;
  VkInstance instance_ = nullptr;
  VkPhysicalDevice physical_ = nullptr;
  VkDevice device_ = nullptr;
  VkQueue queue_ = nullptr;
  std::uint32_t family_ = 0;
  bool has_float64_ = false;
  Api vulkan_;
  DeviceApi api_;
  VkCommandPool pool_ = nullptr;
  std::vector<Buffer> buffers_;
};

// Planes of 8 bits.
Tensor plane(std::uint32_t state) {
  const Tensor result = allocate({1, 35, 41}, DType::u8);
  for (std::int64_t i = 0; i < result.shape.count(); ++i) {
    state = state * 1664525u + 1013904223u;
    result.elements<std::uint8_t>()[i] =
        static_cast<std::uint8_t>(60 + i % 41 * 3 + (state >> 28) * 2);
  }
  return result;
}

TEST_F(CallersDevice, HasTheBitsOfTheCpu) {
  const Tensor x = plane(1), y = plane(2);
  const double expected = item(integer_ssim(x, y));
  VulkanHandles given = handles();
  for (const bool has_float64 : {has_float64_, false}) {
    given.has_float64 = has_float64;
    VulkanDevice device(given);
    EXPECT_EQ(device.name(), VulkanDevice().name());
    EXPECT_GE(device.device().index, 1024);
    EXPECT_TRUE(device.arithmetic().ends_with(
        has_float64 ? "and the device's doubles" : "and doubles in integers"));
    EXPECT_EQ(item(integer_ssim(x, y, {}, {.queue = device.queue()})), expected);
    device.close();
  }
}

// Kernels run behind what the engine submitted, and the engine's copy behind them; nothing waits in
// between, and no buffer is similis's.
TEST_F(CallersDevice, RunsInTheOrderOfItsQueueOnItsBuffers) {
  constexpr std::int64_t kPixels = 16 * 24;
  VulkanDevice device(handles());
  const VkBuffer x = buffer(4 * kPixels).handle, y = buffer(4 * (kPixels + 8)).handle;
  const VkBuffer value = buffer(4).handle;
  const Buffer& copy = buffer(4);
  constexpr float kX = 0.75f, kY = 0.25f;
  std::uint32_t bits[2];
  std::memcpy(&bits[0], &kX, 4);
  std::memcpy(&bits[1], &kY, 4);
  submit([&](VkCommandBuffer commands) {
    api_.CmdFillBuffer(commands, x, 0, VK_WHOLE_SIZE, bits[0]);
    api_.CmdFillBuffer(commands, y, 0, VK_WHOLE_SIZE, bits[1]);
  });
  const TensorView x_view(x, {1, 1, 16, 24}, DType::f32, device.device());
  TensorView y_view(y, {1, 1, 16, 24}, DType::f32, device.device());
  y_view.offset = 8;
  const TensorView value_view(value, {}, DType::f32, device.device());
  mse_into(x_view, y_view, {.value = value_view}, {}, {.queue = device.queue()});
  submit([&](VkCommandBuffer commands) {
    VkMemoryBarrier barrier{.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    barrier.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT;
    api_.CmdPipelineBarrier(commands,
        VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
        VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &barrier, 0, nullptr, 0, nullptr);
    const VkBufferCopy all{0, 0, 4};
    api_.CmdCopyBuffer(commands, value, copy.handle, 1, &all);
  });
  wait();
  float found = 0;
  std::memcpy(&found, copy.mapped, 4);
  EXPECT_EQ(found, 0.25f);
  // Without a queue in Execution the tensors' device says where to run.
  EXPECT_EQ(item(mse(x_view, y_view)), 0.25);
  device.close();
}

TEST_F(CallersDevice, IsLeftAsItWas) {
  VulkanHandles given = handles();
  given.get_instance_proc_addr = reinterpret_cast<void (*)()>(counted_instance_function);
  VulkanDevice device(given);
  const Tensor x = plane(1), y = plane(2);
  integer_ssim(x, y, {}, {.queue = device.queue()});
  {
    const Tensor there = allocate({1, 1, 16, 16}, DType::f32, device.device());
    const std::vector<float> pixels(256, 0.5f);
    copy_from_cpu(there, pixels.data(), 4 * pixels.size(), nullptr);
    EXPECT_EQ(item(ssim(there, there)), 1);
  }
  for (const char* const each : {"Buffer", "Memory", "Semaphore", "CommandPool", "DescriptorPool",
           "PipelineLayout", "DescriptorSetLayout", "PipelineCache", "Pipeline"}) {
    EXPECT_GT(existing()[each], 0) << each;
  }
  device.close();
  for (const auto& [name, count] : existing()) EXPECT_EQ(count, 0) << name;
}

TEST_F(CallersDevice, LocksItsQueueForEachSubmission) {
  struct Lock {
    int locked = 0, times = 0;
  } lock;
  VulkanHandles given = handles();
  given.context = &lock;
  given.lock_queue = [](void* context) {
    EXPECT_EQ(++static_cast<Lock*>(context)->locked, 1);
    ++static_cast<Lock*>(context)->times;
  };
  given.unlock_queue = [](void* context) { --static_cast<Lock*>(context)->locked; };
  VulkanDevice device(given);
  integer_ssim(plane(1), plane(2), {}, {.queue = device.queue()});
  EXPECT_GT(lock.times, 0);
  EXPECT_EQ(lock.locked, 0);
  device.close();
}

template <class Error> std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "it was taken";
}

TEST_F(CallersDevice, RefusesWhatIsMissing) {
  const auto refused = [&](const std::function<void(VulkanHandles&)>& change) {
    VulkanHandles given = handles();
    change(given);
    return refusal<InvalidArgument>([&] { const VulkanDevice device(given); });
  };
  const std::string end = " is null; all four handles are needed";
  EXPECT_EQ(refused([](auto& h) { h.instance = nullptr; }), "vulkan: handles.instance" + end);
  EXPECT_EQ(refused([](auto& h) { h.physical_device = nullptr; }),
      "vulkan: handles.physical_device" + end);
  EXPECT_EQ(refused([](auto& h) { h.device = nullptr; }), "vulkan: handles.device" + end);
  EXPECT_EQ(refused([](auto& h) { h.queue = nullptr; }), "vulkan: handles.queue" + end);
  EXPECT_EQ(refused([](auto& h) { h.lock_queue = [](void*) {}; }),
      "vulkan: handles has one of lock_queue and unlock_queue; give both or none");
  EXPECT_EQ(refused([](auto& h) { h.queue_family = 99; }),
      "vulkan: handles.queue_family is 99; it must be below " +
          std::to_string(queue_families(vulkan_, physical_).size()) + ", the number of families");
}

TEST_F(CallersDevice, IsUsedOnceAndNotAfterItsEnd) {
  VulkanDevice device(handles());
  const std::string number = "vulkan:" + std::to_string(device.device().index);
  EXPECT_EQ(refusal<InvalidArgument>([&] { const VulkanDevice again(handles()); }),
      "vulkan: the queue is that of " + number + "; copy its VulkanDevice, or close it first");
  const VkBuffer x = buffer(4 * 256).handle;
  const TensorView view(x, {1, 1, 16, 16}, DType::f32, device.device());
  device.close();
  EXPECT_NE(refusal<DeviceError>([&] { mse(view, view); }).find(number), std::string::npos);
  EXPECT_EQ(refusal<InvalidArgument>([] { VulkanDevice().close(); }),
      "vulkan: vulkan:0 was opened by similis, and stays open until the process ends");
  VulkanDevice again(handles());
  EXPECT_NE(again.device(), device.device());
  again.close();
}

TEST_F(CallersDevice, IsTakenFromC) {
  similis_vulkan_handles given = SIMILIS_VULKAN_HANDLES_DEFAULTS;
  similis_vulkan_device* device = nullptr;
  EXPECT_EQ(similis_vulkan_device_from_handles(&given, &device), SIMILIS_INVALID_ARGUMENT);
  EXPECT_STREQ(
      similis_last_error(), "vulkan: handles.instance is null; all four handles are needed");
  EXPECT_EQ(similis_vulkan_device_from_handles(nullptr, &device), SIMILIS_INVALID_ARGUMENT);
  EXPECT_STREQ(similis_last_error(), "vulkan_device_from_handles: handles is NULL");
  given.instance = instance_;
  given.physical_device = physical_;
  given.device = device_;
  given.queue = queue_;
  given.queue_family = family_;
  given.has_float64 = has_float64_ ? 1 : 0;
  ASSERT_EQ(similis_vulkan_device_from_handles(&given, &device), SIMILIS_OK)
      << similis_last_error();
  similis_execution execution = SIMILIS_EXECUTION_DEFAULTS;
  execution.vulkan = device;
  const Tensor x = plane(1), y = plane(2), value = allocate({1}, DType::f64);
  const test::CTensor x_c(x), y_c(y), value_c(value);
  ASSERT_EQ(
      similis_integer_ssim(x_c.get(), y_c.get(), nullptr, value_c.get(), &execution), SIMILIS_OK)
      << similis_last_error();
  EXPECT_EQ(item(value), item(integer_ssim(x, y)));
  similis_vulkan_device_destroy(device);
}

}  // namespace
}  // namespace similis::gpu::vulkan
