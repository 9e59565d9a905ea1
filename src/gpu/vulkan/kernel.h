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

/// All kernels have one layout: so many storage buffers at most, bound from 0 on, and bytes of push
/// constants, which every device takes.
constexpr std::uint32_t kMostBuffers = 12, kPushBytes = 128;

/// A module with values for its specialization constants 0, 1, ….
struct KernelName {
  std::string module;
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
  VkPipeline get(const KernelName& name);
  VkDescriptorSetLayout buffers_layout() const { return buffers_layout_; }
  VkPipelineLayout layout() const { return layout_; }

 private:
  VkPipeline make(const KernelName& name);
  void save();

  Gpu& gpu_;
  std::mutex mutex_;
  std::map<KernelName, VkPipeline> kernels_;
  VkDescriptorSetLayout buffers_layout_ = nullptr;
  VkPipelineLayout layout_ = nullptr;
  VkPipelineCache cache_ = nullptr;
  std::string file_;  // empty: there is no folder for it
  std::size_t saved_bytes_ = 0;
};

}  // namespace similis::gpu::vulkan
