// SPDX-License-Identifier: Apache-2.0
// Two videos side by side, read ahead of scoring.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "src/cli/inputs/frame_selection.h"
#include "src/media/video/frames_ahead.h"

namespace similis::cli {

/// The number of frames of each side; empty while it is not known.
struct FrameCounts {
  std::optional<std::int64_t> reference, distorted;
};

/// The rule for bits per sample of the two sides.
enum class Depths : std::uint8_t { must_agree, may_differ };

class VideoPair {
 public:
  /// Throws InvalidArgument, in one line that names both, if the videos differ in size, chroma
  /// subsampling or, where they must agree, bit depth. With `on_threads` each side is read on a
  /// thread of its own.
  VideoPair(std::unique_ptr<media::FrameSource> reference,
      std::unique_ptr<media::FrameSource> distorted, const FrameSelection& selection,
      bool on_threads, Depths depths = Depths::must_agree);

  const media::VideoFormat& format() const { return format_; }  ///< the reference's
  const media::VideoFormat& distorted_format() const { return distorted_format_; }
  const std::string& reference_name() const { return reference_name_; }  ///< as errors call it
  const std::string& distorted_name() const { return distorted_name_; }
  /// Throws InvalidArgument as the constructor does if the depths differ.
  void require_same_depth() const;
  /// The number of pairs to come, as far as the files tell it.
  std::optional<std::int64_t> expected_pairs() const;

  /// Goes to the next pair that is selected. False after the last: at the selection's end, or,
  /// with counts() known then, where either side ends. Throws what reading a side throws.
  bool next();

  std::int64_t frame() const { return reference_frame_.number; }  ///< in the reference
  const media::VideoFrame& reference() const { return reference_frame_; }
  const media::VideoFrame& distorted() const { return distorted_frame_; }

  FrameCounts counts() const { return counts_; }

 private:
  bool selection_has_more() const;
  void count_rest(media::FramesAhead& longer, media::VideoFrame& frame);

  FrameSelection selection_;
  media::VideoFormat format_, distorted_format_;
  std::string reference_name_, distorted_name_;
  media::FramesAhead reference_source_, distorted_source_;
  media::VideoFrame reference_frame_, distorted_frame_;
  bool has_begun_ = false;
  FrameCounts counts_;
};

}  // namespace similis::cli
