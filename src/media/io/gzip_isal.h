// SPDX-License-Identifier: Apache-2.0
// Deflate by Intel's storage library, ISA-L: an eighth of the time of zlib's fastest level for
// fields that are a twentieth larger then (docs/notes/media.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/media/picture/reader.h"

namespace similis::media {

/// One part of a deflate stream, which ends at a byte's border; its matches may lie in the window,
/// the 32 KiB before it at most. Fewer than 4 GiB.
std::vector<std::uint8_t> deflated_by_isal(Bytes window, Bytes bytes, bool is_last);

/// "ISA-L 2.30.0", the version it was built with.
std::string isal_version();

}  // namespace similis::media
