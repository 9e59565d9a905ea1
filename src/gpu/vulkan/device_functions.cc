// SPDX-License-Identifier: Apache-2.0
#include "src/gpu/vulkan/device_functions.h"

#include <cstring>

#include "src/core/require.h"
#include "src/gpu/vulkan/commands.h"

namespace similis::gpu::vulkan {
namespace {

int count() { return static_cast<int>(devices().size()); }

std::string examine(int index) {
  std::string text = describe_device(index);
  try {
    return text + ", " + verdict(opened(index).arithmetic());
  } catch (const DeviceError& error) {
    return fmt::format("{}, cannot be used: {}", text, error.what());
  }
}

int index_of(void* queue) { return queue == nullptr ? 0 : static_cast<Gpu*>(queue)->index(); }

VkBuffer buffer_of(const void* handle) { return static_cast<VkBuffer>(const_cast<void*>(handle)); }

void* allocate(std::size_t bytes, Device device, void*) {
  return opened(device.index).allocate(bytes);
}

void release(void* memory, Device device, void*) {
  opened(device.index).release(buffer_of(memory));
}

void copy_part_to_cpu(
    void* to, const void* from, std::size_t from_offset, std::size_t bytes, Device device) {
  Commands commands(opened(device.index));
  const void* const copied = commands.download(buffer_of(from), from_offset, bytes);
  commands.finish();
  std::memcpy(to, copied, bytes);
}

void copy_part_from_cpu(
    void* to, std::size_t to_offset, const void* from, std::size_t bytes, Device device) {
  Commands commands(opened(device.index));
  std::memcpy(commands.upload(buffer_of(to), to_offset, bytes), from, bytes);
  commands.finish();
}

}  // namespace

const DeviceFunctions& device_functions() {
  static const DeviceFunctions functions = {.count = count,
      .describe = describe_devices,
      .allocate = allocate,
      .release = release,
      .copy_part_to_cpu = copy_part_to_cpu,
      .copy_part_from_cpu = copy_part_from_cpu,
      .examine = examine,
      .exists = exists,
      .index_of = index_of};
  return functions;
}

Gpu& gpu_of(const char* operation, Device device, const Execution& exec) {
  const int of_queue = index_of(exec.queue.handle);
  const bool is_on_cpu = device.kind == DeviceKind::cpu;
  require(is_on_cpu || exec.queue.kind != DeviceKind::vulkan || device.index == of_queue,
      "{}: the images are on {}, and execution.queue is vulkan:{}'s; both must be of one device",
      operation, device, of_queue);
  if (exec.queue.kind == DeviceKind::vulkan && exec.queue.handle != nullptr)
    return *static_cast<Gpu*>(exec.queue.handle);
  return opened(is_on_cpu ? of_queue : device.index);
}

}  // namespace similis::gpu::vulkan
