// SPDX-License-Identifier: Apache-2.0
// Writes a file whole or not at all.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace similis::media {

/// Puts `bytes` where `path` says: into a file beside it that then takes its name, so that what
/// stood there survives every failure. Through a symbolic link it replaces what the link points to;
/// what is no regular file (/dev/stdout, a FIFO) is written to as it is. Throws InvalidArgument,
/// naming `path` and the system's reason, if that cannot be done.
void write_whole_file(const std::string& path, std::span<const std::uint8_t> bytes);

}  // namespace similis::media
