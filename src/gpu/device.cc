// SPDX-License-Identifier: Apache-2.0
// The one place that knows which kinds of GPU this build holds code for.
#include "src/gpu/device.h"

#include "similis/error.hpp"
#include "src/gpu/cuda/device_functions.h"

namespace similis::gpu {
namespace {

const DeviceFunctions& required(Device device) {
  const DeviceFunctions* const functions = device_functions(device.kind);
  if (functions == nullptr) throw DeviceError("gpu: this build of similis has no GPU code");
  return *functions;
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
  }
  return nullptr;
}

int device_count(DeviceKind kind) {
  const DeviceFunctions* const functions = device_functions(kind);
  return functions == nullptr ? 0 : functions->count();
}

std::string describe(DeviceKind kind) {
  const DeviceFunctions* const functions = device_functions(kind);
  return functions == nullptr ? "this build has no GPU code" : functions->describe();
}

void copy_to_cpu(void* to, const void* from, std::size_t bytes, Device device, void* queue) {
  required(device).copy_to_cpu(to, from, bytes, device, queue);
}

void copy_from_cpu(void* to, const void* from, std::size_t bytes, Device device, void* queue) {
  required(device).copy_from_cpu(to, from, bytes, device, queue);
}

}  // namespace similis::gpu
