// SPDX-License-Identifier: Apache-2.0
// The frames of a video to score (--frames, --every, --offset), the format of raw video (--size,
// --pix-fmt) and the frame rate of clips that do not say theirs (--fps).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/media/video/video.h"

namespace similis::cli {

/// Frame i of the reference is compared with frame i + offset of the distorted video, for i of
/// first, first + every, … below end.
struct FrameSelection {
  std::int64_t first = 0;
  std::optional<std::int64_t> end;  ///< empty: that of the videos
  std::int64_t every = 1;
  std::int64_t offset = 0;
  friend bool operator==(const FrameSelection&, const FrameSelection&) = default;

  /// True if this frame of the reference is to be scored, provided that both videos reach it.
  bool has(std::int64_t frame) const;

  /// The first such frame from `frame` on; it may lie after the end.
  std::int64_t next(std::int64_t frame) const;

  /// The number of frames to score in videos of these lengths.
  std::int64_t count(std::int64_t reference_frames, std::int64_t distorted_frames) const;
};

/// Parses "A:B", where A or B may be omitted, and two numbers; each text may be empty. Throws
/// UsageError, naming the option.
FrameSelection parse_frame_selection(
    const std::string& frames, const std::string& every, const std::string& offset);

/// Parses "24", "23.976" or "24000/1001"; 0/0 if the text is empty. Throws UsageError.
media::FrameRate parse_rate(const std::string& text);

/// Parses "1920x1080" and one of ffmpeg's names of planar YUV; empty if both texts are. Throws
/// UsageError, naming the option, if only one is given or one is malformed.
std::optional<media::RawVideo> parse_raw_video(
    const std::string& size, const std::string& pixel_format);

}  // namespace similis::cli
