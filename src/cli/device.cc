// SPDX-License-Identifier: Apache-2.0
#include "src/cli/device.h"

#include <fmt/core.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "similis/error.hpp"
#include "similis/vulkan.hpp"
#include "src/cli/usage_error.h"
#include "src/core/number_text.h"
#include "src/core/require.h"
#include "src/core/tensor/memory.h"
#include "src/gpu/device.h"

namespace similis::cli {
namespace {

Device found_gpu(std::string_view argument, DeviceKind kind, int index) {
  const int count = gpu::device_count(kind);
  if (index < count) return {kind, index};
  throw DeviceError(
      fmt::format("{}{}: {}", argument, count > 0 ? " does not exist" : "", gpu::describe(kind)));
}

std::optional<DeviceKind> gpu_kind(std::string_view text) {
  for (const DeviceKind kind : gpu::kKinds) {
    if (text == name(kind)) return kind;
  }
  return {};
}

std::string backend_of_environment() {
  const char* const backend = std::getenv("SIMILIS_BACKEND");
  return backend == nullptr ? "" : backend;
}

// Number of elements from the first to the last in memory; strides are never negative here.
std::size_t span_bytes(const TensorView& view) {
  std::int64_t last = 0;
  for (int axis = 0; axis < view.shape.rank(); ++axis) {
    last += (view.shape[axis] - 1) * view.strides[axis];
  }
  return static_cast<std::size_t>(last + 1) * size_bytes(view.dtype);
}

}  // namespace

Device parse_device(std::string_view text) {
  if (text == "auto") {
    const std::string backend = backend_of_environment();
    const std::optional<DeviceKind> kind = gpu_kind(backend);
    return kind ? found_gpu("SIMILIS_BACKEND is " + backend, *kind, 0) : Device{};
  }
  if (text == "cpu") return {};
  if (text == "gpu") {
    for (const DeviceKind kind : gpu::kKinds) {
      if (gpu::device_count(kind) > 0) return {kind, 0};
    }
    throw DeviceError(fmt::format("--device gpu: {}; {}", gpu::describe(DeviceKind::cuda),
        gpu::describe(DeviceKind::vulkan)));
  }
  const std::size_t colon = text.find(':');
  const std::optional<DeviceKind> kind = gpu_kind(text.substr(0, colon));
  const auto index =
      colon == text.npos ? std::optional<int>(0) : parse_number<int>(text.substr(colon + 1));
  if (!kind || !index || *index < 0) {
    throw UsageError(fmt::format(
        "--device is \"{}\"; it must be auto, cpu, gpu, cuda, cuda:N, vulkan or vulkan:N", text));
  }
  return found_gpu(fmt::format("--device {}", text), *kind, *index);
}

Queue queue_of(Device device) {
  return device.kind == DeviceKind::vulkan ? VulkanDevice(device.index).queue() : Queue{};
}

Tensor on_device(const Tensor& array, Device device, const Execution& exec) {
  if (array.device == device || device.kind == DeviceKind::vulkan) return array;
  const std::size_t bytes = span_bytes(array);
  TensorView copy = array;
  copy.device = device;
  std::shared_ptr<void> memory = allocate_bytes(bytes, device, exec);
  copy.handle = memory.get();
  copy.offset = 0;
  if (array.device.kind == DeviceKind::cpu) {
    gpu::copy_from_cpu(copy.data(), array.data(), bytes, device, exec.queue.handle);
  } else {
    gpu::copy_to_cpu(copy.data(), array.data(), bytes, array.device, exec.queue.handle);
  }
  return {copy, std::move(memory)};
}

std::string device_name(const Device& device) { return fmt::format("{}", device); }

std::string way_to_cpu(const Device& device) {
  if (gpu_kind(backend_of_environment()) == device.kind) return "unset SIMILIS_BACKEND";
  return "leave out --device " + device_name(device);
}

}  // namespace similis::cli
