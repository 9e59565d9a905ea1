// SPDX-License-Identifier: Apache-2.0
// Pipelines of a device, each made once; the driver's own cache of them outlives the process in the
// user's cache folder.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "src/gpu/vulkan/api.h"

namespace similis::gpu::vulkan {

class Gpu;

struct Kernel {
  VkPipeline pipeline = nullptr;
  VkPipelineLayout layout = nullptr;
  VkDescriptorSetLayout buffers_layout = nullptr;
  int push_bytes = 0;
};

/// A module with values for its specialization constants 0, 1, ….
struct KernelName {
  std::string module;
  int buffers = 0;     ///< storage buffers, bound from 0 on
  int push_bytes = 0;  ///< of push constants
  std::vector<std::int32_t> constants = {};
  friend auto operator<=>(const KernelName&, const KernelName&) = default;
};

class KernelCache {
 public:
  explicit KernelCache(Gpu& gpu);
  ~KernelCache();
  KernelCache(const KernelCache&) = delete;
  KernelCache& operator=(const KernelCache&) = delete;
  /// Valid as long as the device.
  const Kernel& get(const KernelName& name);

 private:
  Kernel make(const KernelName& name);
  void save();

  Gpu& gpu_;
  std::mutex mutex_;
  std::map<KernelName, Kernel> kernels_;
  VkPipelineCache cache_ = nullptr;
  std::string file_;  // empty: there is no folder for it
  std::size_t saved_bytes_ = 0;
};

}  // namespace similis::gpu::vulkan
