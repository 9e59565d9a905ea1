// SPDX-License-Identifier: Apache-2.0
// Pictures and frames of video without their margins.
#pragma once

#include <cstdint>
#include <string>

#include "src/media/picture/image.h"
#include "src/media/video/video.h"

namespace similis::media {

/// Pixels to leave out at each side.
struct Crop {
  std::int64_t left = 0, right = 0, top = 0, bottom = 0;
  bool is_empty() const { return *this == Crop{}; }
  friend bool operator==(const Crop&, const Crop&) = default;
};

/// The image without the margins. Throws InvalidArgument, naming it, if nothing is left.
Image cropped(const Image& image, const Crop& crop, const std::string& name);

/// The format without the margins. Throws InvalidArgument, naming the video, if nothing is left or
/// if the left or top margin would cut a chroma sample.
VideoFormat cropped(const VideoFormat& format, const Crop& crop, const std::string& name);

/// The part of a frame that the cropped format has, into `out`.
void crop_frame(
    const VideoFrame& frame, const VideoFormat& format, const Crop& crop, VideoFrame& out);

}  // namespace similis::media
