// SPDX-License-Identifier: Apache-2.0
// The two sides of a frame as their files store them, for metrics of colours rather than of code
// values: nothing is converted, blended or promoted.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "src/media/picture/image.h"
#include "src/media/video/video.h"

namespace similis::cli {

struct PictureAsRead {
  media::Image image;
  std::string name;  ///< for errors
};

struct VideoFrameAsRead {
  const media::VideoFrame* frame;
  const media::VideoFormat* format;
  std::string name;
};

/// The reference, then the distorted side. One of the two is set, or for volumes none.
struct AsRead {
  std::shared_ptr<const std::array<PictureAsRead, 2>> pictures;
  std::shared_ptr<const std::array<VideoFrameAsRead, 2>> video;
};

}  // namespace similis::cli
