// SPDX-License-Identifier: Apache-2.0
// Two animations, files of several pages or image sequences, side by side: pictures one after the
// other.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/cli/inputs/clips/video_pair.h"
#include "src/cli/inputs/frame_selection.h"
#include "src/cli/inputs/picture_pair.h"
#include "src/media/picture/pictures_ahead.h"

namespace similis::cli {

class AnimationPair {
 public:
  /// The bytes of a file, or the files of a sequence, and the number of pictures in it.
  struct Side {
    std::vector<std::uint8_t> bytes;
    std::vector<std::string> files;
    std::string name;
    std::int64_t frames = 1;
  };
  AnimationPair(Side reference, Side distorted, const FrameSelection& selection,
      const std::optional<Color>& background, const std::optional<Adaptation>& adaptation);

  std::int64_t expected_pairs() const;

  /// The next pair that is selected; empty after the last. Throws as read_pictures() and
  /// pair_pictures() do.
  std::optional<PicturePair> next(const Execution& exec);

  std::int64_t frame() const { return reference_.read - 1; }  ///< in the reference
  FrameCounts counts() const { return {reference_.frames, distorted_.frames}; }

 private:
  struct Reader {
    Reader(Side side, const std::function<bool(std::int64_t)>& is_wanted);

    std::string name;
    std::int64_t frames;
    std::int64_t read = 0;  // how many pictures were taken
    media::PicturesAhead pictures;

    /// The picture of this number, which was not passed yet.
    media::Image picture(std::int64_t number);
  };

  FrameSelection selection_;
  std::optional<Color> background_;
  std::optional<Adaptation> adaptation_;
  Reader reference_, distorted_;
  std::int64_t scored_ = 0;
};

}  // namespace similis::cli
