// SPDX-License-Identifier: Apache-2.0
// --crop auto: the black bars of both sides.
#pragma once

#include <optional>
#include <string>

#include "src/cli/inputs/adaptation.h"
#include "src/media/open.h"

namespace similis::cli {

/// The black margins of a file, and its size.
struct Bars {
  media::Crop margins;
  std::int64_t width = 0, height = 0;
};

/// The bars of what `media` is, which was opened from `path`; its video may be gone. Videos and
/// animations are read once more, of a long image sequence pictures spread over it. Throws
/// InvalidArgument, naming the file, if it cannot be read twice.
Bars find_bars(const std::string& path, const media::OpenedMedia& media,
    const std::optional<media::RawVideo>& raw);

/// Sets the margins of both sides: those that they share if their sizes are equal, else each its
/// own.
void crop_bars(const Bars& reference, const Bars& distorted, Adaptation& adaptation);

}  // namespace similis::cli
