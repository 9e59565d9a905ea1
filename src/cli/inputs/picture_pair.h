// SPDX-License-Identifier: Apache-2.0
// Makes two pictures alike in kind, exactly or as the user asked, or refuses.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "similis/execution.hpp"
#include "src/cli/inputs/adaptation.h"
#include "src/cli/inputs/background.h"
#include "src/cli/inputs/frame_pair.h"

namespace similis::cli {

/// The user's rules for pictures that differ in kind.
struct PictureRules {
  std::optional<Color> background;
  std::optional<Adaptation> adaptation;
  bool masks_not_finite = false;  ///< --nan mask
};

/// Conversions that made two pictures comparable: a key such as "color", and a sentence.
using Differences = std::vector<std::pair<std::string, std::string>>;

struct PicturePair {
  FramePair frames;
  int bit_depth = 8;
  int channels = 3;
  Differences differences;
  Done done;  ///< on request
};

/// Two pictures, read, on the CPU. Samples of 8 bits and floats that need no conversion are not
/// copied: the frames are views of `as_read`.
///   margins, size       cropped and resized as `rules` say; sizes that differ then: refused
///   colour space        differs: the distorted picture is converted to the reference's
///   alpha               opaque: dropped; else blended over the background, or refused without it
///   grey and colour     grey becomes three equal channels
///   8 and 16 bits       8 become 16: v·257
///   floats              on both sides, the data range is 1; finite, or masked by the rules
/// Refusals other than of the size are put in frames.refusal, for the metrics that they concern.
/// Throws InvalidArgument, in one line that names the file.
PicturePair pair_pictures(media::Image reference, media::Image distorted,
    const std::string& reference_name, const std::string& distorted_name, const PictureRules& rules,
    const Execution& exec);

}  // namespace similis::cli
