// SPDX-License-Identifier: Apache-2.0
// GPUs of any vendor, through Vulkan. The loader is opened when a device is asked for; a machine
// without one is an error in a sentence. `similis info` lists the devices.
//
//   const similis::VulkanDevice device;
//   similis::Tensor score = similis::integer_ssim(x, y, {}, {.queue = device.queue()});
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "similis/api.h"
#include "similis/execution.hpp"
#include "similis/tensor.hpp"

namespace similis {

/// A device that the caller has opened, as an engine does. The handles are Vulkan's own; this
/// header needs none of Vulkan's.
struct VulkanHandles {
  void* instance = nullptr;         ///< VkInstance, made for Vulkan 1.2 or later
  void* physical_device = nullptr;  ///< VkPhysicalDevice
  void* device = nullptr;           ///< VkDevice; shaderInt64 and timelineSemaphore are enabled
  void* queue = nullptr;            ///< VkQueue that computes
  std::uint32_t queue_family = 0;   ///< the family of the queue
  bool has_float64 = false;         ///< shaderFloat64 is enabled; scores are the same, but sooner
  /// vkGetInstanceProcAddr of the loader that made the instance; null: that of libvulkan.so.1.
  void (*get_instance_proc_addr)() = nullptr;
  /// Called around each submission, as Vulkan lets one thread at a time use a queue. Null: no other
  /// thread uses the queue during a call.
  void (*lock_queue)(void* context) = nullptr;
  void (*unlock_queue)(void* context) = nullptr;
  void* context = nullptr;  ///< the argument of these two
};

/// A GPU that is used through Vulkan. Copies are the same device; it stays open until the process
/// ends, unless it is the caller's.
class SIMILIS_API VulkanDevice {
 public:
  /// The device of this number, in the order of `similis info`. Throws DeviceError if there is no
  /// such device.
  explicit VulkanDevice(int index = 0);
  /// The first device whose name has this part, with upper and lower case as they are. Throws
  /// DeviceError if there is none.
  explicit VulkanDevice(std::string_view part_of_name);
  /// A device of the caller's, which must call close() before it destroys the device. Kernels and
  /// copies go to the caller's queue: they see what was submitted to it before. Later work of the
  /// caller's there sees their results behind a barrier that waits for compute shaders and copies.
  /// Throws InvalidArgument if a handle is null, the family does not compute or the queue is in use
  /// by another VulkanDevice, DeviceError if the device lacks what kernels need.
  explicit VulkanDevice(const VulkanHandles& handles);
  /// Waits for submitted work and destroys what was made on a device of the caller's. No tensor of
  /// it may be left that similis allocated, and no call may use it then or later. Throws
  /// InvalidArgument for other devices.
  void close();

  /// For allocate(), and in tensors whose handle is a VkBuffer of this device.
  Device device() const { return {DeviceKind::vulkan, index_}; }
  /// For Execution: calls on arrays of the CPU then run on copies on this device.
  Queue queue() const { return {DeviceKind::vulkan, gpu_}; }
  /// In the driver's words.
  std::string name() const;
  /// The arithmetic that was found exact by running it, or the reason why operations that promise
  /// bits are refused. The first call on a device takes up to a second.
  std::string arithmetic() const;

 private:
  int index_ = 0;
  void* gpu_ = nullptr;
};

}  // namespace similis
