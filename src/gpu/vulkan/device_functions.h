// SPDX-License-Identifier: Apache-2.0
// Vulkan's table of device functions, and the GPU behind a call's arguments.
#pragma once

#include "similis/execution.hpp"
#include "src/gpu/device.h"

namespace similis::gpu::vulkan {

class Gpu;

const DeviceFunctions& device_functions();

/// The GPU that runs a call on arrays of this device: their own, or the queue's where they are on
/// the CPU. Throws InvalidArgument if the arrays are on another device than the queue's.
Gpu& gpu_of(const char* operation, Device device, const Execution& exec);

}  // namespace similis::gpu::vulkan
