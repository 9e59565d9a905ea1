// SPDX-License-Identifier: Apache-2.0
// Pictures and frames of video at another size, by zimg: in float, on values as they are stored,
// rounded to nearest. Edges of the picture stay edges; chroma keeps its place between the luma
// samples.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "similis/execution.hpp"
#include "src/media/picture/image.h"
#include "src/media/video/video.h"

namespace similis::media {

/// lanczos has three lobes, bicubic is Catmull-Rom's. Each is widened when it makes pictures
/// smaller.
enum class Resampling : std::uint8_t { lanczos, spline36, bicubic, bilinear };

const char* name_of(Resampling filter);

/// "zimg 3.0.4"; empty if this build has none.
std::string resampling_library();

/// Throws InvalidArgument if this build has no zimg.
void require_resampling();

/// The image at another size. Its alpha must be opaque. Throws InvalidArgument as
/// require_resampling() does.
Image resampled(const Image& image, std::int64_t width, std::int64_t height, Resampling filter,
    const Execution& exec);

/// Takes frames of one size to another; the formats differ in width and height alone.
class FrameResampler {
 public:
  FrameResampler(const VideoFormat& from, const VideoFormat& to, Resampling filter);
  ~FrameResampler();
  FrameResampler(FrameResampler&&) noexcept;

  void run(const VideoFrame& frame, VideoFrame& out, const Execution& exec);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace similis::media
