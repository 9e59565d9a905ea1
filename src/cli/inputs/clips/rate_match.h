// SPDX-License-Identifier: Apache-2.0
// --match-rate nearest: for each frame of the reference, the distorted frame that is nearest in
// time. Both begin at 0 and have the constant rate that their files name.
#pragma once

#include <cstdint>

#include "src/cli/inputs/frame_selection.h"
#include "src/media/video/video.h"

namespace similis::cli {

class RateMatch {
 public:
  /// Both rates are known.
  RateMatch(const media::FrameRate& reference, const media::FrameRate& distorted);

  /// The distorted frame for this frame of the reference; of two as near, the later one.
  std::int64_t distorted(std::int64_t reference) const;

  /// True if this distorted frame is that of a selected frame of the reference.
  bool is_wanted(std::int64_t distorted, const FrameSelection& selection) const;

  /// The number of the reference's frames that have a frame in a distorted video of this length.
  std::int64_t reference_frames(std::int64_t distorted_frames) const;

 private:
  double step_;  // distorted frames for a frame of the reference
};

}  // namespace similis::cli
