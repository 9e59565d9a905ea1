// SPDX-License-Identifier: Apache-2.0
// The one place that knows which kinds of GPU this build holds code for.
#include "src/gpu/device.h"

#include "similis/error.hpp"
#include "src/gpu/cuda/device_functions.h"
#include "src/gpu/vulkan/device_functions.h"

namespace similis::gpu {
namespace {

const DeviceFunctions& required(Device device) {
  const DeviceFunctions* const functions = device_functions(device.kind);
  if (functions == nullptr) {
    throw DeviceError(std::string("gpu: this build of similis has no code for ") +
                      name(device.kind) + " devices");
  }
  return *functions;
}

std::size_t offset_bytes(const TensorView& view) {
  return static_cast<std::size_t>(view.offset) * size_bytes(view.dtype);
}

}  // namespace

const DeviceFunctions* device_functions(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::cpu: break;
    case DeviceKind::cuda:
#ifdef SIMILIS_HAS_CUDA
      return &cuda_functions();
#else
      break;
#endif
    case DeviceKind::vulkan:
#ifdef SIMILIS_HAS_VULKAN
      return &vulkan::device_functions();
#else
      break;
#endif
  }
  return nullptr;
}

int device_count(DeviceKind kind) {
  const DeviceFunctions* const functions = device_functions(kind);
  return functions == nullptr ? 0 : functions->count();
}

bool exists(Device device) {
  const DeviceFunctions* const functions = device_functions(device.kind);
  if (functions == nullptr) return false;
  if (functions->exists != nullptr) return functions->exists(device.index);
  return device.index >= 0 && device.index < functions->count();
}

std::string describe(DeviceKind kind) {
  const DeviceFunctions* const functions = device_functions(kind);
  if (functions != nullptr) return functions->describe();
  return kind == DeviceKind::vulkan ? "this build has no Vulkan code"
                                    : "this build has no CUDA code";
}

std::string examine(DeviceKind kind) {
  const DeviceFunctions* const functions = device_functions(kind);
  const bool can_examine = functions != nullptr && functions->examine != nullptr;
  return can_examine ? functions->examine() : describe(kind);
}

void copy_to_cpu(void* to, const TensorView& from, std::size_t bytes, void* queue) {
  const DeviceFunctions& functions = required(from.device);
  if (functions.copy_part_to_cpu == nullptr) {
    return functions.copy_to_cpu(to, from.data(), bytes, from.device, queue);
  }
  functions.copy_part_to_cpu(to, from.handle, offset_bytes(from), bytes, from.device);
}

void copy_from_cpu(const TensorView& to, const void* from, std::size_t bytes, void* queue) {
  const DeviceFunctions& functions = required(to.device);
  if (functions.copy_part_from_cpu == nullptr) {
    return functions.copy_from_cpu(to.data(), from, bytes, to.device, queue);
  }
  functions.copy_part_from_cpu(to.handle, offset_bytes(to), from, bytes, to.device);
}

void copy_to_cpu(void* to, const void* from, std::size_t bytes, Device device, void* queue) {
  required(device).copy_to_cpu(to, from, bytes, device, queue);
}

void copy_from_cpu(void* to, const void* from, std::size_t bytes, Device device, void* queue) {
  required(device).copy_from_cpu(to, from, bytes, device, queue);
}

}  // namespace similis::gpu
