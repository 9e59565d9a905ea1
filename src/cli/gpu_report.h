// SPDX-License-Identifier: Apache-2.0
// `similis info --report`: what each GPU gives and how fast, to be sent to who maintains similis.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace similis::cli {

/// For each Vulkan device, or one of them, and pictures of a size: whether the measures that
/// promise bits keep them, how far the losses and their gradients are from the CPU's in f64, and
/// the time of a call.
std::string gpu_report(
    std::optional<int> index = {}, std::int64_t height = 1080, std::int64_t width = 1920);

}  // namespace similis::cli
