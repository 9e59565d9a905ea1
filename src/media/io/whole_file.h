// SPDX-License-Identifier: Apache-2.0
// Writes a file completely or not at all.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace similis::media {

/// Writes `bytes` to a new file beside `path` and renames it to `path`, so that an existing file
/// survives every failure. Replaces the target of a symbolic link; writes directly to anything but
/// a regular file (/dev/stdout, a FIFO). Throws InvalidArgument, naming `path` and the system's
/// reason, if that fails.
void write_whole_file(const std::string& path, std::span<const std::uint8_t> bytes);

}  // namespace similis::media
