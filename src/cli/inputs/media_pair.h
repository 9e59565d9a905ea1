// SPDX-License-Identifier: Apache-2.0
// Two files as what they are: a pair of pictures, of videos, of animations or of volumes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "src/cli/inputs/animation_pair.h"
#include "src/cli/inputs/background.h"
#include "src/cli/inputs/directories.h"
#include "src/cli/inputs/frame_selection.h"
#include "src/cli/inputs/picture_pair.h"
#include "src/cli/inputs/video_pair.h"
#include "src/cli/inputs/volume_pair.h"

namespace similis::cli {

/// How errors and notes call a path: "-" is standard input.
std::string spoken_name(const std::string& path);

/// What the command line says of all inputs.
struct InputOptions {
  std::optional<Color> background;
  std::optional<media::RawVideo> raw;
  FrameSelection selection;
  Depths depths = Depths::must_agree;  ///< of video

  /// Whether something was asked for that only video has.
  bool are_for_video() const { return raw || selection != FrameSelection{}; }
};

using MediaPair = std::variant<PicturePair, std::unique_ptr<VideoPair>,
    std::unique_ptr<AnimationPair>, std::unique_ptr<VolumePair>>;

/// Opens both files. Throws InvalidArgument, in one line that names the file, if one cannot be
/// read, if they are of different kinds, or as PicturePair, VideoPair and VolumePair do.
MediaPair open_media_pair(
    const FilePair& files, const InputOptions& options, int threads, const Execution& exec);

}  // namespace similis::cli
