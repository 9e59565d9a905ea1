// SPDX-License-Identifier: Apache-2.0
// Runs a library that damaged files can crash or hang in a process of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace similis::media {

/// The bytes that `work` returns in a copy of this process, or nothing if that crashed or took more
/// than `seconds` of a processor. An InvalidArgument that `work` throws is thrown here. In the copy
/// no other thread runs, so `work` must not wait for one. Throws Error, with the system's reason,
/// if there can be no copy.
std::optional<std::vector<std::uint8_t>> run_isolated(
    const std::function<std::vector<std::uint8_t>()>& work, int seconds);

}  // namespace similis::media
