// SPDX-License-Identifier: Apache-2.0
// GPUs of any vendor, through Vulkan. The loader is opened when a device is asked for; a machine
// without one is an error in a sentence. `similis info` lists the devices.
//
//   const similis::VulkanDevice device;
//   similis::Tensor score = similis::integer_ssim(x, y, {}, {.queue = device.queue()});
#pragma once

#include <string>
#include <string_view>

#include "similis/api.h"
#include "similis/execution.hpp"
#include "similis/tensor.hpp"

namespace similis {

/// A GPU that is used through Vulkan. Copies are the same device; it stays open until the process
/// ends.
class SIMILIS_API VulkanDevice {
 public:
  /// The device of this number, in the order of `similis info`. Throws DeviceError if there is no
  /// such device.
  explicit VulkanDevice(int index = 0);
  /// The first device whose name has this part, with upper and lower case as they are. Throws
  /// DeviceError if there is none.
  explicit VulkanDevice(std::string_view part_of_name);

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
