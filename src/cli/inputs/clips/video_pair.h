// SPDX-License-Identifier: Apache-2.0
// Two videos side by side, read ahead of scoring.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "src/cli/inputs/adaptation.h"
#include "src/cli/inputs/clips/reference_frames.h"
#include "src/cli/inputs/frame_selection.h"
#include "src/media/video/frames_ahead.h"

namespace similis::cli {

/// The number of frames of each side; empty while it is not known.
struct FrameCounts {
  std::optional<std::int64_t> reference, distorted;
};

/// The rule for bits per sample of the two sides.
enum class Depths : std::uint8_t { must_agree, may_differ };

/// The settings by which two videos are paired.
struct VideoOptions {
  FrameSelection selection;
  Depths depths = Depths::must_agree;
  std::optional<Adaptation> adaptation;  ///< empty where its options are not offered
};

class VideoPair {
 public:
  /// Throws InvalidArgument, in one line that names both, if the videos, adapted as the options
  /// say, differ in size, chroma subsampling or, where they must agree, bit depth. With `on_thread`
  /// the distorted side is read on a thread of its own. Pairs that share a reference are walked in
  /// step.
  VideoPair(std::shared_ptr<ReferenceFrames> reference,
      std::unique_ptr<media::FrameSource> distorted, const VideoOptions& options, bool on_thread,
      const Execution& exec);

  /// The reference's, adapted, as are its frames.
  const media::VideoFormat& format() const { return format_; }
  const media::VideoFormat& distorted_format() const { return distorted_format_; }
  const std::string& reference_name() const { return reference_name_; }  ///< as errors call it
  const std::string& distorted_name() const { return distorted_name_; }
  /// Throws InvalidArgument as the constructor does if the depths differ.
  void require_same_depth() const;
  /// Throws InvalidArgument, naming both, if one has full range and the other limited, unless they
  /// are to be compared as stored. A video that does not say has limited range.
  void require_same_range() const;
  /// The changes made to the frames on request.
  const Done& done() const { return done_; }
  /// The number of pairs to come, as far as the files tell it.
  std::optional<std::int64_t> expected_pairs() const;

  /// Goes to the next pair that is selected. False after the last: at the selection's end or where
  /// either side ends. Throws what reading a side throws.
  bool next();

  /// After the last pair: where a side ended before the selection did, reads the other to its end,
  /// which may be damaged there, so that counts() is known.
  void read_rest();
  FrameCounts counts() const { return counts_; }

  std::int64_t frame() const { return number_; }  ///< in the reference
  const media::VideoFrame& reference() const { return *reference_frame_; }
  const media::VideoFrame& distorted() const { return *adapted_frame_; }

  /// Makes next() and read_rest() end early. Any thread may call it.
  void cancel();

 private:
  // The source is taken by reference, so that it is still there when the formats are read from it.
  VideoPair(std::shared_ptr<ReferenceFrames> reference,
      std::unique_ptr<media::FrameSource>&& distorted, const VideoOptions& options, bool on_thread,
      const Execution& exec, AdaptedFormats formats);
  void require_alike() const;
  bool is_wanted(std::int64_t distorted_frame) const;

  // The distorted frame for a frame of the reference.
  std::int64_t distorted_for(std::int64_t reference) const;
  bool read_distorted(std::int64_t number);

  FrameSelection selection_;
  std::optional<Adaptation> adaptation_;
  std::optional<RateMatch> match_;
  Execution exec_;
  Done done_;
  media::VideoFormat format_, distorted_format_;
  std::string reference_name_, distorted_name_;
  std::shared_ptr<ReferenceFrames> reference_;
  media::FramesAhead distorted_source_;
  media::VideoFrame distorted_frame_;  // as read
  FrameAdapter reference_adapter_, distorted_adapter_;
  const media::VideoFrame *reference_frame_ = nullptr, *adapted_frame_ = nullptr;
  std::int64_t place_ = -1;   // in the selection
  std::int64_t number_ = -1;  // of the reference's frame
  bool has_ended_ = false;    // a side has
  FrameCounts counts_;
};

}  // namespace similis::cli
