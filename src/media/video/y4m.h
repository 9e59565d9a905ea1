// SPDX-License-Identifier: Apache-2.0
// y4m (YUV4MPEG2): a line that describes the frames, then each with a line of its own before it.
#pragma once

#include <string>
#include <string_view>

#include "src/media/video/video.h"

namespace similis::media {

inline constexpr std::string_view kY4mMagic = "YUV4MPEG2 ";

/// The longest header that is read, of a file and of a frame.
inline constexpr std::size_t kMaxY4mLine = 4096;

/// Reads the first line, without its end: size, colour tag, and what else may stand there (rate,
/// interlacing, aspect, comments), which does not change what a frame holds. Colour tags are those
/// that ffmpeg and mjpegtools write: 420 with or without jpeg, mpeg2 and paldv, 411, 422, 444,
/// 444alpha, mono, and pN (N of 9, 10, 12, 14, 16) on 420, 422, 444 and mono; without any the X
/// tag YSCSS counts, and without that 420. Throws InvalidArgument, naming the file as `name`.
VideoFormat parse_y4m_header(std::string_view line, const std::string& name);

}  // namespace similis::media
