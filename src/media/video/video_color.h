// SPDX-License-Identifier: Apache-2.0
// The colours of video: the choices that no file makes in full, and frames converted to RGB.
#pragma once

#include <optional>
#include <string>

#include "similis/execution.hpp"
#include "similis/tensor.hpp"
#include "src/media/picture/image.h"
#include "src/media/video/video.h"

namespace similis::media {

enum class YuvMatrix : std::uint8_t { bt601, bt709, bt2020 };
enum class SampleRange : std::uint8_t { limited, full };
/// The position of a chroma sample among the luma samples that it belongs to.
enum class ChromaSiting : std::uint8_t { left, center, topleft };
enum class ChromaUpsampling : std::uint8_t { bilinear, nearest };

/// All choices. Transfer and primaries are numbers of H.273.
struct VideoColor {
  YuvMatrix matrix = YuvMatrix::bt709;
  SampleRange range = SampleRange::limited;
  ChromaSiting siting = ChromaSiting::left;
  ChromaUpsampling upsampling = ChromaUpsampling::bilinear;
  std::uint8_t transfer = 13;  ///< sRGB
  std::uint8_t primaries = 1;  ///< BT.709
};

/// Choices that were made by the user; the stream or the defaults make the others.
struct VideoColorChoices {
  std::optional<YuvMatrix> matrix;
  std::optional<SampleRange> range;
  std::optional<ChromaSiting> siting;
  std::optional<std::uint8_t> transfer, primaries;
  ChromaUpsampling upsampling = ChromaUpsampling::bilinear;
};

/// The user's choice, else the stream's, else: BT.709's matrix above 576 lines and BT.601's up to
/// there, limited range, chroma on the left, sRGB's curve, BT.709's primaries. Throws
/// InvalidArgument, naming the video, if the stream has a tag that is not supported.
VideoColor resolve_color(
    const VideoFormat& format, const VideoColorChoices& choices, const std::string& name);

/// The frame as encoded RGB from 0 to 1, interleaved, clipped: f32 [height, width, 3].
Tensor to_rgb(const VideoFrame& frame, const VideoFormat& format, const VideoColor& color,
    const Execution& exec);

}  // namespace similis::media
