// SPDX-License-Identifier: Apache-2.0
// Two clips of pictures side by side: pictures one after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "src/cli/inputs/clips/picture_clip.h"
#include "src/cli/inputs/clips/reference_pictures.h"
#include "src/cli/inputs/clips/video_pair.h"
#include "src/cli/inputs/frame_selection.h"
#include "src/cli/inputs/picture_pair.h"

namespace similis::cli {

class AnimationPair {
 public:
  /// Pairs that share a reference are walked in step. Throws InvalidArgument if the rates are to be
  /// matched, which is for video.
  AnimationPair(std::shared_ptr<ReferencePictures> reference, PictureClip distorted,
      const FrameSelection& selection, const PictureRules& rules, bool reads_ahead);

  /// As far as the files tell it.
  std::optional<std::int64_t> expected_pairs() const;

  /// The next pair that is selected; empty after the last. Throws as read_pictures() and
  /// pair_pictures() do.
  std::optional<PicturePair> next(const Execution& exec);
  /// After the last pair: where a side ended before the selection did, reads a video on the other
  /// side to its end, so that counts() is known.
  void read_rest();

  std::int64_t frame() const { return number_; }  ///< in the reference
  FrameCounts counts() const { return counts_; }
  media::FrameRate reference_rate() const { return reference_->rate(); }  ///< of a video
  media::FrameRate distorted_rate() const { return distorted_.rate(); }
  /// The conversions of videos' frames: a key such as "reference_rgb", and a sentence.
  Differences conversions() const;

  /// Makes waits for a video end. Any thread may call it.
  void cancel();

 private:
  FrameSelection selection_;
  PictureRules rules_;
  std::shared_ptr<ReferencePictures> reference_;
  PictureReader distorted_;
  std::int64_t place_ = -1;   // in the selection
  std::int64_t number_ = -1;  // of the reference's picture
  bool has_ended_ = false;    // a side has
  FrameCounts counts_;
};

}  // namespace similis::cli
