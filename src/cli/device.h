// SPDX-License-Identifier: Apache-2.0
// The device that --device names, and arrays on it.
#pragma once

#include <string>
#include <string_view>

#include "similis/execution.hpp"
#include "similis/tensor.hpp"

namespace similis::cli {

/// auto, cpu, cuda or cuda:N. auto is the CPU, which is done with a picture before a GPU is ready
/// to begin, unless SIMILIS_BACKEND is cuda. Throws UsageError if it is none of these, DeviceError
/// if it asks for a GPU that this build or this machine does not have.
Device parse_device(std::string_view text);

/// The array on a device: itself if it is there. Waits for the copy.
Tensor on_device(const Tensor& array, Device device, const Execution& exec);

/// "cpu" or "cuda:0".
std::string device_name(const Device& device);

}  // namespace similis::cli
