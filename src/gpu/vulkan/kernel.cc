// SPDX-License-Identifier: Apache-2.0
#include "src/gpu/vulkan/kernel.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "src/gpu/vulkan/gpu.h"
#include "src/gpu/vulkan/module.h"

namespace similis::gpu::vulkan {
namespace {

// The file of the driver's cache, named by the device and its driver; empty without a home.
std::string cache_file(const VkPhysicalDeviceProperties& device) {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  std::filesystem::path folder;
  if (cache != nullptr && *cache != '\0') {
    folder = cache;
  } else if (home != nullptr && *home != '\0') {
    folder = std::filesystem::path(home) / ".cache";
  } else {
    return {};
  }
  std::string name;
  for (const std::uint8_t byte : device.pipelineCacheUUID) name += fmt::format("{:02x}", byte);
  return folder / "similis" /
         fmt::format("vulkan-{:04x}-{:04x}-{}", device.vendorID, device.deviceID, name);
}

}  // namespace

KernelCache::KernelCache(Gpu& gpu) : gpu_(gpu), file_(cache_file(gpu.described().properties)) {
  std::ifstream file(file_, std::ios::binary);
  const std::vector<char> saved((std::istreambuf_iterator<char>(file)), {});
  saved_bytes_ = saved.size();
  // The driver looks at the data's header, and takes none of another driver or version.
  VkPipelineCacheCreateInfo create{.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  create.initialDataSize = saved.size();
  create.pInitialData = saved.data();
  check(gpu.api().CreatePipelineCache(gpu.device(), &create, nullptr, &cache_),
      "a pipeline cache cannot be made");
  VkDescriptorSetLayoutBinding bindings[kMostBuffers];
  for (std::uint32_t i = 0; i < kMostBuffers; ++i)
    bindings[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
  VkDescriptorSetLayoutCreateInfo buffers{
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  buffers.bindingCount = std::min(kMostBuffers, gpu.limits().maxPerStageDescriptorStorageBuffers);
  buffers.pBindings = bindings;
  check(gpu.api().CreateDescriptorSetLayout(gpu.device(), &buffers, nullptr, &buffers_layout_),
      "a kernel's buffers are refused");
  const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes};
  VkPipelineLayoutCreateInfo layout{.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  layout.setLayoutCount = 1;
  layout.pSetLayouts = &buffers_layout_;
  layout.pushConstantRangeCount = 1;
  layout.pPushConstantRanges = &push;
  check(gpu.api().CreatePipelineLayout(gpu.device(), &layout, nullptr, &layout_),
      "a kernel's arguments are refused");
}

KernelCache::~KernelCache() {
  const DeviceApi& api = gpu_.api();
  for (const auto& [name, pipeline] : kernels_)
    api.DestroyPipeline(gpu_.device(), pipeline, nullptr);
  api.DestroyPipelineLayout(gpu_.device(), layout_, nullptr);
  api.DestroyDescriptorSetLayout(gpu_.device(), buffers_layout_, nullptr);
  api.DestroyPipelineCache(gpu_.device(), cache_, nullptr);
}

VkPipeline KernelCache::get(const KernelName& name) {
  const std::lock_guard lock(mutex_);
  const auto found = kernels_.find(name);
  if (found != kernels_.end()) return found->second;
  const VkPipeline made = kernels_.emplace(name, make(name)).first->second;
  save();
  return made;
}

VkPipeline KernelCache::make(const KernelName& name) {
  const DeviceApi& api = gpu_.api();
  const std::vector<std::uint32_t> words = module_words(name.module);
  VkShaderModuleCreateInfo code{.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  code.codeSize = words.size() * sizeof(std::uint32_t);
  code.pCode = words.data();
  VkShaderModule module = nullptr;
  check(api.CreateShaderModule(gpu_.device(), &code, nullptr, &module), "a module is refused");
  std::vector<VkSpecializationMapEntry> entries;
  for (std::uint32_t i = 0; i < name.constants.size(); ++i)
    entries.push_back({i, i * 4, sizeof(std::int32_t)});
  const VkSpecializationInfo constants{static_cast<std::uint32_t>(entries.size()), entries.data(),
      name.constants.size() * sizeof(std::int32_t), name.constants.data()};
  VkComputePipelineCreateInfo create{.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  create.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  create.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  create.stage.module = module;
  create.stage.pName = "main";
  create.stage.pSpecializationInfo = &constants;
  create.layout = layout_;
  VkPipeline pipeline = nullptr;
  const VkResult made =
      api.CreateComputePipelines(gpu_.device(), cache_, 1, &create, nullptr, &pipeline);
  api.DestroyShaderModule(gpu_.device(), module, nullptr);
  check(made, ("the driver does not compile " + name.module).c_str());
  return pipeline;
}

// A cache that cannot be written costs the next process time and nothing else.
void KernelCache::save() {
  std::size_t bytes = 0;
  if (file_.empty() ||
      gpu_.api().GetPipelineCacheData(gpu_.device(), cache_, &bytes, nullptr) != VK_SUCCESS ||
      bytes <= saved_bytes_)
    return;
  std::vector<char> data(bytes);
  if (gpu_.api().GetPipelineCacheData(gpu_.device(), cache_, &bytes, data.data()) != VK_SUCCESS)
    return;
  saved_bytes_ = bytes;
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(file_).parent_path(), ignored);
  const std::string written = fmt::format("{}.{}", file_, getpid());
  std::ofstream file(written, std::ios::binary);
  file.write(data.data(), static_cast<std::streamsize>(bytes));
  file.close();
  if (file) {
    std::filesystem::rename(written, file_, ignored);
  } else {
    std::filesystem::remove(written, ignored);
  }
}

}  // namespace similis::gpu::vulkan
