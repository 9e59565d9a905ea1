// SPDX-License-Identifier: Apache-2.0
// Code values of video at another depth or in the other range.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "src/media/video/video.h"

namespace similis::media {

/// True if the stream says so; a video that does not say has limited range.
bool is_full_range(const VideoFormat& format);

/// Maps code values of one format to those of another, which differ in depth and range alone.
/// Depths a and b of one range: v·2^(b-a) in limited and v·(2^b-1)/(2^a-1) in full range. Ranges
/// that differ go through the share of the range that v is. Rounded to nearest, clipped.
class CodeMapping {
 public:
  CodeMapping(const VideoFormat& from, const VideoFormat& to);
  void run(const VideoFrame& frame, VideoFrame& out) const;

 private:
  VideoFormat from_, to_;
  std::array<std::vector<std::uint16_t>, 2> tables_;  // of luma, of chroma
};

}  // namespace similis::media
