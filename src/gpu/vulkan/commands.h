// SPDX-License-Identifier: Apache-2.0
// The commands of one call, recorded in order and submitted once: copies in, kernels, copies out.
// Each command sees what those before it wrote.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "src/gpu/vulkan/gpu.h"
#include "src/gpu/vulkan/kernel.h"

namespace similis::gpu::vulkan {

/// The objects behind one recording; they are used again once its work is done.
struct Slot {
  explicit Slot(Gpu& gpu);
  void reset(Gpu& gpu);
  void destroy(Gpu& gpu);

  struct Staging {
    Buffer buffer;
    std::size_t used = 0;
  };
  struct Recording {
    VkCommandPool pool = nullptr;
    VkCommandBuffer buffer = nullptr;
  };
  Recording commands, copies;
  bool has_copies = false;
  std::vector<VkDescriptorPool> pools;  ///< of kernels' arguments
  std::size_t sets = 0;                 ///< number that was taken of them
  std::vector<Staging> staging;
  std::uint64_t done_at = 0;  ///< the submission
};

struct Groups {
  std::int64_t x = 1, y = 1, z = 1;
};

/// Arguments of a kernel begin with the number that scripts/seal.py adds sums by.
struct KernelArguments {
  float one = 1;
};

class Commands {
 public:
  explicit Commands(Gpu& gpu);
  ~Commands();
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  Gpu& gpu() { return gpu_; }

  /// Memory that is freed once the commands are submitted.
  VkBuffer workspace(std::size_t bytes);
  /// The same, holding these bytes.
  VkBuffer workspace_of(const void* from, std::size_t bytes);

  struct Input {
    VkBuffer buffer;
    void* bytes;
  };
  /// Workspace that begins with bytes of the caller, who writes them to the place that is returned
  /// before the commands are submitted. They are copied over while earlier commands still run.
  Input input(std::size_t bytes);
  /// Queues a copy to a buffer; the caller writes the bytes to the place that is returned before
  /// the commands are submitted.
  void* upload(VkBuffer to, std::size_t offset_bytes, std::size_t bytes);
  /// Queues a copy from a buffer; the bytes are at the place that is returned after finish(), as
  /// long as this object lives.
  const void* download(VkBuffer from, std::size_t offset_bytes, std::size_t bytes);
  /// Queues the clearing of a buffer's first bytes, a multiple of 4.
  void clear(VkBuffer buffer, std::size_t bytes);

  /// Queues a kernel. Arguments is a struct that begins with KernelArguments::one.
  template <class Arguments>
  void run(const KernelName& kernel, std::initializer_list<VkBuffer> buffers,
      const Arguments& arguments, const Groups& groups) {
    static_assert(sizeof(Arguments) <= kPushBytes);
    run(gpu_.kernels().get(kernel), {buffers.begin(), buffers.size()}, &arguments,
        sizeof(Arguments), groups);
  }

  /// Hands the commands to the device, and does not wait.
  void submit();
  /// Waits until submitted commands are done.
  void wait();
  /// Submits, and waits.
  void finish();

 private:
  void run(VkPipeline kernel, std::span<const VkBuffer> buffers, const void* arguments,
      std::uint32_t bytes, const Groups& groups);
  VkDescriptorSet take_set();
  struct Place {
    VkBuffer buffer;
    std::size_t offset;
    void* mapped;
  };
  Place staging(std::size_t bytes);
  void order(VkPipelineStageFlags after = kStages);
  void release_workspaces();
  VkBuffer workspace(std::size_t bytes, Gpu::Ready ready);

  Gpu& gpu_;
  std::unique_ptr<Slot> slot_;
  std::vector<VkBuffer> workspaces_;
};

}  // namespace similis::gpu::vulkan
