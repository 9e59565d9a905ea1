// SPDX-License-Identifier: Apache-2.0
#include "src/cli/device.h"

#include <fmt/core.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "similis/error.hpp"
#include "src/cli/terminal/number_text.h"
#include "src/cli/usage_error.h"
#include "src/core/require.h"
#include "src/core/tensor/memory.h"
#include "src/gpu/device.h"

namespace similis::cli {
namespace {

Device found_gpu(std::string_view argument, int index) {
  if (!gpu::is_compiled() || index >= gpu::device_count()) {
    throw DeviceError(fmt::format("{}: {}", argument, gpu::describe()));
  }
  return {DeviceKind::cuda, index};
}

bool environment_wants_gpu() {
  const char* const backend = std::getenv("SIMILIS_BACKEND");
  return backend != nullptr && std::string_view(backend) == "cuda";
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
  if (text == "auto" && environment_wants_gpu()) return found_gpu("SIMILIS_BACKEND is cuda", 0);
  if (text == "auto" || text == "cpu") return {};
  const bool has_index = text.starts_with("cuda:");
  const auto index = has_index ? parse_number<int>(text.substr(5)) : std::optional<int>(0);
  if ((!has_index && text != "cuda") || !index || *index < 0) {
    throw UsageError(fmt::format("--device is \"{}\"; it must be auto, cpu, cuda or cuda:N", text));
  }
  return found_gpu(fmt::format("--device {}", text), *index);
}

Tensor on_device(const Tensor& array, Device device, const Execution& exec) {
  if (array.device == device) return array;
  const std::size_t bytes = span_bytes(array);
  TensorView copy = array;
  copy.device = device;
  std::shared_ptr<void> memory = allocate_bytes(bytes, device, exec);
  copy.data = memory.get();
  if (device.kind == DeviceKind::cuda) {
    gpu::copy_from_cpu(copy.data, array.data, bytes, device, exec.stream);
  } else {
    gpu::copy_to_cpu(copy.data, array.data, bytes, array.device, exec.stream);
  }
  return {copy, std::move(memory)};
}

std::string device_name(const Device& device) { return fmt::format("{}", device); }

}  // namespace similis::cli
