// SPDX-License-Identifier: Apache-2.0
// The planes of a pair of video frames as metrics take them.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "similis/execution.hpp"
#include "src/cli/inputs/clips/video_pair.h"
#include "src/cli/inputs/frame_pair.h"

namespace similis::cli {

/// "y", "cb" or "cr".
const char* plane_name(int plane);
bool is_plane_name(std::string_view text);

class VideoPlanePairs {
 public:
  explicit VideoPlanePairs(const media::VideoFormat& format) : format_(format) {}

  /// This plane of two frames: u8 as they stand, more bits as f32, in memory that
  /// the next call for this plane uses again.
  FramePair plane(const media::VideoFrame& reference, const media::VideoFrame& distorted, int plane,
      const Execution& exec);

 private:
  Tensor samples(const media::VideoFrame& frame, int plane, Tensor& wide, const Execution& exec);

  media::VideoFormat format_;
  std::array<std::array<Tensor, 2>, 3> wide_;  // of each plane, reference and distorted
};

}  // namespace similis::cli
