// SPDX-License-Identifier: Apache-2.0
// Parses --device, and copies arrays to devices.
#pragma once

#include <string>
#include <string_view>

#include "similis/execution.hpp"
#include "similis/tensor.hpp"

namespace similis::cli {

/// Parses auto, cpu, gpu, or cuda or vulkan with or without :N. auto is the CPU, which finishes a
/// picture before a GPU has started, unless SIMILIS_BACKEND is cuda or vulkan; gpu is cuda, or else
/// vulkan. Throws UsageError for other texts, DeviceError for a GPU that this build or this machine
/// does not have.
Device parse_device(std::string_view text);

/// The queue by which calls on arrays of the CPU run on a Vulkan device; for other devices none.
Queue queue_of(Device device);

/// The array on a device: itself if it is there already. Waits for the copy. Arrays for a Vulkan
/// device stay on the CPU, since calls copy them over with their own commands.
Tensor on_device(const Tensor& array, Device device, const Execution& exec);

/// "cpu" or "cuda:0".
std::string device_name(const Device& device);

/// Advice by which auto is the CPU: "leave out --device cuda:0", or "unset SIMILIS_BACKEND".
std::string way_to_cpu(const Device& device);

}  // namespace similis::cli
