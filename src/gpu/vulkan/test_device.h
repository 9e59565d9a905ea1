// SPDX-License-Identifier: Apache-2.0
// Devices of tests, each with findings of its own.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>

#include "similis/execution.hpp"
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

}  // namespace similis::test
