// SPDX-License-Identifier: Apache-2.0
// A GPU that is used through Vulkan: its device, queues and memory. Work goes to one queue and runs
// in the order in which it was submitted; a timeline semaphore counts what is done. A call's copies
// to the device go to a second queue, if there is one, beside the work of earlier calls.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "similis/vulkan.hpp"
#include "src/gpu/vulkan/arithmetic.h"
#include "src/gpu/vulkan/devices.h"

namespace similis::gpu::vulkan {

/// Memory of a device. The program reads and writes what is `mapped`.
struct Buffer {
  VkBuffer handle = nullptr;
  VkDeviceMemory memory = nullptr;
  std::size_t bytes = 0;
  void* mapped = nullptr;
  std::uint64_t last_use = 0;  ///< the submission after which nothing uses it
};

/// The pipeline stages of kernels and copies.
constexpr VkPipelineStageFlags kStages =
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;

struct Slot;        // what one recording of commands needs (commands.h)
class KernelCache;  // kernel.h

class Gpu {
 public:
  Gpu(const Described& described, int index);
  /// A device that is open, with the functions of its instance; by the queue, if there is one.
  Gpu(const Described& described, int index, const Api& vulkan, const VulkanHandles& handles);
  /// Waits for submitted work and destroys what was made on the device, but not the device. No
  /// buffer may be in use, and no call.
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  int index() const { return index_; }
  const DeviceApi& api() const { return api_; }
  VkDevice device() const { return device_; }
  VkQueue queue() const { return queue_; }
  const Described& described() const { return described_; }
  const VkPhysicalDeviceLimits& limits() const { return described_.properties.limits; }

  /// The findings of the probe, which runs when they are first asked for.
  const Arithmetic& arithmetic();
  /// Throws DeviceError, for an operation that promises bits, if the device does not keep them.
  const Arithmetic& exact_arithmetic(const char* operation);

  enum class Ready : std::uint8_t { in_order, now };
  /// Memory that kernels use, ready for work submitted from now on or for anything at once; null if
  /// there is none left.
  VkBuffer allocate(std::size_t bytes, Ready ready = Ready::in_order);
  /// Gives it back once the work submitted so far is done.
  void release(VkBuffer buffer);
  /// Memory of the host that the device copies from and to.
  Buffer host_buffer(std::size_t bytes);
  /// Gives memory back to the driver. No submitted work may use it.
  void destroy(const Buffer& buffer);

  KernelCache& kernels() { return *kernels_; }

  /// Queues the commands, and returns the number by which wait() knows them. Copies, if any, are
  /// done before; they wait for no earlier work.
  std::uint64_t submit(VkCommandBuffer commands, VkCommandBuffer copies = nullptr);
  void wait(std::uint64_t submission);
  std::uint64_t done();

  std::unique_ptr<Slot> take_slot();
  void give_back(std::unique_ptr<Slot> slot);

 private:
  void lock_queue(void (*lock_or_unlock)(void* context)) const {
    if (lock_or_unlock != nullptr) lock_or_unlock(handles_.context);
  }
  bool make(std::size_t bytes, bool of_host, Buffer& buffer);
  void destroy_oldest_free();

  const Described described_;
  const int index_;
  const VulkanHandles handles_;
  const VkDevice device_;
  DeviceApi api_;
  VkQueue queue_ = nullptr,
          copy_queue_ = nullptr;  // one and the same where a caller handed it over
  VkSemaphore timeline_ = nullptr, copy_timeline_ = nullptr;
  VkPhysicalDeviceMemoryProperties memory_ = {};
  std::mutex submitting_;
  std::atomic<std::uint64_t> submitted_ = 0;
  std::uint64_t copies_submitted_ = 0;
  std::mutex allocating_;
  std::map<VkBuffer, Buffer> buffers_;
  std::vector<Buffer*> free_;  // of buffers_, kept for the next allocations, the oldest first
  std::size_t free_bytes_ = 0;
  std::mutex slots_mutex_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::unique_ptr<KernelCache> kernels_;
  std::once_flag probed_;
  Arithmetic arithmetic_;
};

/// The GPU of that number, opened when it is first asked for. Throws DeviceError if there is none.
Gpu& opened(int index);
/// True if there is one of that number, open or not.
bool exists(int index);

/// A caller's device, which gets a number of its own. Throws InvalidArgument if a handle is missing
/// or the queue is in use already, DeviceError if the device lacks what kernels need.
Gpu& handed_over(const VulkanHandles& handles);
/// Ends the use of a caller's device. Throws InvalidArgument if similis opened it itself.
void give_back_device(int index);

}  // namespace similis::gpu::vulkan
