// SPDX-License-Identifier: Apache-2.0
// Parses --device, and copies arrays to devices.
#pragma once

#include <string>
#include <string_view>

#include "similis/execution.hpp"
#include "similis/tensor.hpp"

namespace similis::cli {

/// Parses auto, cpu, cuda or cuda:N. auto is the CPU, which finishes a picture before a GPU has
/// started, unless SIMILIS_BACKEND is cuda. Throws UsageError for other texts, DeviceError for a
/// GPU that this build or this machine does not have.
Device parse_device(std::string_view text);

/// The array on a device: itself if it is there already. Waits for the copy.
Tensor on_device(const Tensor& array, Device device, const Execution& exec);

/// "cpu" or "cuda:0".
std::string device_name(const Device& device);

}  // namespace similis::cli
