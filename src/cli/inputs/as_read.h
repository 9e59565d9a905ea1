// SPDX-License-Identifier: Apache-2.0
// The two sides of a frame as their files hold them, for metrics that look at colours rather than
// at code values: nothing converted, blended or promoted.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "src/media/picture/image.h"
#include "src/media/video/video.h"

namespace similis::cli {

struct PictureAsRead {
  media::Image image;
  std::string name;  ///< as errors call it
};

struct VideoFrameAsRead {
  const media::VideoFrame* frame;
  const media::VideoFormat* format;
  std::string name;
};

/// One of the two is there, or of volumes none: the reference, then the distorted.
struct AsRead {
  std::shared_ptr<const std::array<PictureAsRead, 2>> pictures;
  std::shared_ptr<const std::array<VideoFrameAsRead, 2>> video;
};

}  // namespace similis::cli
