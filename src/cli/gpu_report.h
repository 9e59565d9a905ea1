// SPDX-License-Identifier: Apache-2.0
// `similis info --report`: what each GPU gives and how fast, to be sent to who maintains similis.
#pragma once

#include <string>

namespace similis::cli {

/// For each Vulkan device, whether the measures that promise bits keep them, and the time of a
/// call.
std::string gpu_report();

}  // namespace similis::cli
