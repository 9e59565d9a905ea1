// SPDX-License-Identifier: Apache-2.0
// The device that --device names.
#pragma once

#include <string>
#include <string_view>

#include "similis/tensor.hpp"

namespace similis::cli {

/// auto, cpu, cuda or cuda:N. Throws UsageError if it is none of these, DeviceError if it asks for
/// a GPU that this build cannot use.
Device parse_device(std::string_view text);

/// "cpu" or "cuda:0".
std::string device_name(const Device& device);

}  // namespace similis::cli
