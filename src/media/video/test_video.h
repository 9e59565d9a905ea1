// SPDX-License-Identifier: Apache-2.0
// Video with known samples, as bytes of y4m and raw files.
#pragma once

#include <string>
#include <vector>

#include "src/media/picture/test_pictures.h"
#include "src/media/video/video.h"

namespace similis::media {

/// Noise within the format's depth, opaque; the same for the same arguments.
inline Buffer noise_frame(const VideoFormat& format, std::uint32_t seed) {
  Buffer bytes(format.frame_bytes());
  const std::uint32_t mask = (1u << format.pixels.bit_depth) - 1;
  const bool is_wide = format.pixels.bit_depth > 8;
  for (std::size_t i = 0; i < bytes.size(); i += is_wide ? 2 : 1) {
    seed = seed * 1664525 + 1013904223;
    const std::uint32_t sample = seed >> 8 & mask;
    bytes[i] = static_cast<std::uint8_t>(sample);
    if (is_wide) bytes[i + 1] = static_cast<std::uint8_t>(sample >> 8);
  }
  if (format.pixels.has_alpha) {
    const std::size_t alpha = format.plane_bytes(0);
    for (std::size_t i = bytes.size() - alpha; i < bytes.size(); ++i) bytes[i] = 255;
  }
  return bytes;
}

inline void append(Buffer& bytes, const std::string& text) {
  bytes.insert(bytes.end(), text.begin(), text.end());
}

inline void append(Buffer& bytes, const Buffer& more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}

/// Frames of noise, the first from `seed`, with this colour tag.
inline Buffer y4m_noise(const VideoFormat& format, const std::string& tag, int frames,
    std::uint32_t seed = 1, const std::string& frame_line = "FRAME") {
  Buffer bytes;
  append(bytes, "YUV4MPEG2 W" + std::to_string(format.width) + " H" +
                    std::to_string(format.height) + " F25:1 Ip A1:1" + tag + "\n");
  for (int i = 0; i < frames; ++i) {
    append(bytes, frame_line + "\n");
    append(bytes, noise_frame(format, seed + static_cast<std::uint32_t>(i)));
  }
  return bytes;
}

inline Buffer raw_noise(const VideoFormat& format, int frames, std::uint32_t seed = 1) {
  Buffer bytes;
  for (int i = 0; i < frames; ++i) {
    append(bytes, noise_frame(format, seed + static_cast<std::uint32_t>(i)));
  }
  return bytes;
}

/// All frames of the source and, if it breaks off, the words.
struct ReadVideo {
  std::vector<Buffer> frames;
  std::string error;
};
inline ReadVideo read_all(FrameSource& source) {
  ReadVideo result;
  try {
    for (VideoFrame frame; source.read(frame);) result.frames.push_back(frame.bytes);
  } catch (const InvalidArgument& error) {
    result.error = error.what();
  }
  return result;
}

}  // namespace similis::media
