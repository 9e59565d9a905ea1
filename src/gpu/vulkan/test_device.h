// SPDX-License-Identifier: Apache-2.0
// Devices of tests, each with findings of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "similis/execution.hpp"
#include "similis/vulkan.hpp"
#include "src/gpu/device.h"
#include "src/gpu/vulkan/gpu.h"

namespace similis::test {

/// The first Vulkan device, opened anew: what SIMILIS_VULKAN_TEST has the probe find holds for it
/// alone. Check gpu::device_count() first.
class TestDevice {
 public:
  explicit TestDevice(const std::string& switches = "") {
    setenv("SIMILIS_VULKAN_TEST", switches.c_str(), 1);
    gpu_ = std::make_unique<gpu::vulkan::Gpu>(gpu::vulkan::devices().front(), 0);
    arithmetic_ = gpu_->arithmetic();
    unsetenv("SIMILIS_VULKAN_TEST");
  }

  gpu::vulkan::Gpu& gpu() const { return *gpu_; }
  const gpu::vulkan::Arithmetic& arithmetic() const { return arithmetic_; }
  Queue queue() const { return {DeviceKind::vulkan, gpu_.get()}; }

 private:
  std::unique_ptr<gpu::vulkan::Gpu> gpu_;
  gpu::vulkan::Arithmetic arithmetic_;
};

/// The array with the memory between its elements, three elements into a buffer of the first
/// device.
inline Tensor in_vulkan_buffer(const TensorView& view) {
  std::int64_t before = 0, after = 0;
  for (int axis = 0; axis < view.shape.rank(); ++axis) {
    const std::int64_t reach = (view.shape[axis] - 1) * view.strides[axis];
    (reach < 0 ? before : after) += std::abs(reach);
  }
  constexpr std::int64_t kFirst = 3;
  const Device device = VulkanDevice().device();
  const Tensor memory = allocate({kFirst + before + after + 1}, view.dtype, device);
  TensorView all = memory;
  all.offset = kFirst;
  const auto bytes = static_cast<std::int64_t>(size_bytes(view.dtype));
  gpu::copy_from_cpu(all, static_cast<const std::byte*>(view.data()) - before * bytes,
      static_cast<std::size_t>((before + after + 1) * bytes), nullptr);
  TensorView result = view;
  result.handle = memory.handle;
  result.offset = kFirst + before;
  result.device = device;
  return {result, std::make_shared<Tensor>(memory)};
}

}  // namespace similis::test
