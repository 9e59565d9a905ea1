// SPDX-License-Identifier: Apache-2.0
// The number of bits that an encode takes.
#pragma once

#include <optional>

#include "src/cli/results/report.h"

namespace similis::cli {

/// The size of the distorted file, or sequence, of a scored pair: of a video's stream alone, if
/// ffmpeg is there to tell it from the others in its file, else of the whole file. Empty for
/// standard input and what is not a regular file.
std::optional<EncodedSize> encoded_size(const ScoredPair& pair, bool is_raw);

}  // namespace similis::cli
