// SPDX-License-Identifier: Apache-2.0
// Tests on a Vulkan device, and devices whose probe has findings of its own.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "similis/execution.hpp"
#include "similis/vulkan.hpp"
#include "src/gpu/device.h"
#include "src/gpu/vulkan/gpu.h"
#include "tests/on_gpu.h"

namespace similis::test {

/// Tests that are skipped, with a message, where there is no Vulkan device.
template <class Base = testing::Test> class VulkanTest : public Base {
 protected:
  void SetUp() override {
    if (gpu::device_count(DeviceKind::vulkan) == 0)
      GTEST_SKIP() << gpu::describe(DeviceKind::vulkan);
  }
  /// On the first device.
  static Execution exec() { return {.queue = VulkanDevice().queue()}; }
};

/// The first Vulkan device, opened anew: what SIMILIS_VULKAN_TEST has the probe find holds for it
/// alone. It stays open, as devices that similis opens do. Check gpu::device_count() first.
class TestDevice {
 public:
  explicit TestDevice(const std::string& switches = "") {
    setenv("SIMILIS_VULKAN_TEST", switches.c_str(), 1);
    static auto& all = *new std::vector<std::unique_ptr<gpu::vulkan::Gpu>>;
    all.push_back(std::make_unique<gpu::vulkan::Gpu>(gpu::vulkan::devices().front(), 0));
    gpu_ = all.back().get();
    arithmetic_ = gpu_->arithmetic();
    unsetenv("SIMILIS_VULKAN_TEST");
  }

  gpu::vulkan::Gpu& gpu() const { return *gpu_; }
  const gpu::vulkan::Arithmetic& arithmetic() const { return arithmetic_; }
  Queue queue() const { return {DeviceKind::vulkan, gpu_}; }

 private:
  gpu::vulkan::Gpu* gpu_ = nullptr;
  gpu::vulkan::Arithmetic arithmetic_;
};

/// A device for each arithmetic that kernels can be made of here: the first device as it is, and
/// with integers in the place of its fused multiply-add, of its doubles and of both, where it has
/// them. Opened once for all tests of a process: the probe and the kernels take a while on a CPU.
/// Check gpu::device_count() first.
inline const std::vector<TestDevice>& devices_of_each_arithmetic() {
  static const auto open_all = [] {
    std::vector<TestDevice> devices(1);
    const gpu::vulkan::Arithmetic own = devices.front().arithmetic();
    if (own.uses_device_fma) devices.emplace_back("integer_fma");
    if (own.uses_device_doubles) devices.emplace_back("integer_f64");
    if (own.uses_device_fma && own.uses_device_doubles)
      devices.emplace_back("integer_fma,integer_f64");
    return devices;
  };
  static const auto& devices = *new std::vector<TestDevice>(open_all());
  return devices;
}

/// The array with the memory between its elements, three elements into a buffer of the first
/// device.
inline Tensor in_vulkan_buffer(const TensorView& view) {
  constexpr std::int64_t kFirst = 3;
  const Span span(view);
  const auto bytes = static_cast<std::int64_t>(size_bytes(view.dtype));
  const Device device = VulkanDevice().device();
  const Tensor memory = allocate({kFirst + span.bytes / bytes}, view.dtype, device);
  TensorView all = memory;
  all.offset = kFirst;
  gpu::copy_from_cpu(all, static_cast<const std::byte*>(view.data()) - span.before * bytes,
      static_cast<std::size_t>(span.bytes), nullptr);
  TensorView result = view;
  result.handle = memory.handle;
  result.offset = kFirst + span.before;
  result.device = device;
  return {result, std::make_shared<Tensor>(memory)};
}

/// The elements of a dense result on the device.
template <class T> std::vector<T> elements_on_vulkan(const Tensor& tensor) {
  std::vector<T> elements(static_cast<std::size_t>(tensor.shape.count()));
  gpu::copy_to_cpu(elements.data(), tensor, elements.size() * sizeof(T), nullptr);
  return elements;
}

}  // namespace similis::test
