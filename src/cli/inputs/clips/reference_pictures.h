// SPDX-License-Identifier: Apache-2.0
// The pictures of a reference, decoded once for all clips that are compared with it in step.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "src/cli/inputs/clips/picture_clip.h"
#include "src/cli/inputs/clips/reference_frames.h"
#include "src/cli/inputs/frame_selection.h"

namespace similis::cli {

class ReferencePictures {
 public:
  ReferencePictures(PictureClip clip, const FrameSelection& selection, bool reads_ahead);
  /// Takes a video that others may walk too. Throws InvalidArgument as RgbFrames does.
  explicit ReferencePictures(std::shared_ptr<ReferenceFrames> video);

  /// Goes to the selected picture with this place in the selection, which is that of the last call
  /// or the one after it. False at the end. Throws what reading throws, in each call for that
  /// place.
  bool go_to(std::int64_t place, const Execution& exec);
  const media::Image& picture() const { return *picture_; }  ///< of the last go_to()
  std::int64_t number() const { return number_; }            ///< its number in the clip

  const std::string& name() const { return name_; }
  /// As those of PictureReader.
  std::optional<std::int64_t> frames() const;
  std::optional<std::int64_t> expected_frames() const;
  void read_rest();
  media::FrameRate rate() const;
  std::string conversion() const;
  void cancel();

 private:
  bool take_next(std::int64_t place, const Execution& exec);

  std::string name_;
  FrameSelection selection_;
  std::optional<PictureReader> clip_;       // either a clip
  std::shared_ptr<ReferenceFrames> video_;  // or a video
  std::optional<RgbFrames> rgb_;
  std::optional<std::int64_t> video_frames_;
  std::shared_ptr<const media::Image> picture_;
  std::int64_t place_ = -1, number_ = -1;
  bool is_at_end_ = false;
  std::exception_ptr error_;
};

}  // namespace similis::cli
