// SPDX-License-Identifier: Apache-2.0
// Opens two files as a pair of pictures, videos, animations or volumes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "src/cli/inputs/adaptation.h"
#include "src/cli/inputs/auto_crop.h"
#include "src/cli/inputs/background.h"
#include "src/cli/inputs/clips/animation_pair.h"
#include "src/cli/inputs/clips/video_pair.h"
#include "src/cli/inputs/directories.h"
#include "src/cli/inputs/frame_selection.h"
#include "src/cli/inputs/picture_pair.h"
#include "src/cli/inputs/volume_pair.h"
#include "src/media/open.h"

namespace similis::cli {

/// The name of a path in errors and notes: "-" is standard input.
std::string display_name(const std::string& path);

/// Options of the command line that concern the inputs.
struct InputOptions {
  std::optional<media::RawVideo> raw;
  FrameSelection selection;
  media::FrameRate rate = {};          ///< of clips that do not say their own
  Depths depths = Depths::must_agree;  ///< of video
  PictureRules rules = {};             ///< adaptation: empty where it is not offered
  int kept_planes = 3;                 ///< of frames of two videos, from the first on

  /// True if an option is given that only video takes.
  bool are_for_video() const { return raw || rate.is_known() || selection != FrameSelection{}; }
};

using MediaPair = std::variant<PicturePair, std::unique_ptr<VideoPair>,
    std::unique_ptr<AnimationPair>, std::unique_ptr<VolumePair>>;

/// A reference that was opened once, to be paired with any number of files.
class OpenedReference {
 public:
  /// Throws InvalidArgument, in one line that names the file, if it cannot be read.
  OpenedReference(
      const std::string& path, const InputOptions& options, int threads, const Execution& exec);

  /// Throws InvalidArgument, in one line that names the file, if it cannot be read, if the two are
  /// of different kinds, or as PicturePair, VideoPair and VolumePair do. A video beside a clip of
  /// pictures is one too. Videos and clips of one reference are walked in step.
  MediaPair pair_with(const std::string& distorted);

 private:
  friend MediaPair open_media_pair(
      const FilePair& files, const InputOptions& options, int threads, const Execution& exec);
  OpenedReference(const std::string& path, media::OpenedMedia media, const InputOptions& options,
      int threads, const Execution& exec);
  /// With `is_last` the reference's memory is handed on instead of copied.
  MediaPair pair_with(const std::string& distorted, media::OpenedMedia media, bool is_last);
  std::unique_ptr<AnimationPair> pair_clips(
      const std::string& name, media::OpenedMedia distorted, const PictureRules& rules);

  std::string path_;
  InputOptions options_;
  int threads_;
  Execution exec_;
  std::optional<Bars> bars_;                     // once they were looked for
  media::OpenedMedia media_;                     // without its video
  std::shared_ptr<ReferenceFrames> frames_;      // of its video
  std::shared_ptr<ReferencePictures> pictures_;  // of it as a clip of pictures, once asked for
};

/// Opens both files, at once where there are threads. Throws as OpenedReference does.
MediaPair open_media_pair(
    const FilePair& files, const InputOptions& options, int threads, const Execution& exec);

}  // namespace similis::cli
