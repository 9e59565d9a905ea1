// SPDX-License-Identifier: Apache-2.0
// Properties that every reader must have for any bytes. Each format has a fuzz target of its
// own, which calls its reader directly: none starts ffmpeg.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string_view>

#include "src/media/picture/reader.h"

namespace similis::media {

/// Ends the run, which then keeps the input, unless the condition holds.
inline void must(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "must hold: %s\n", what);
  std::abort();
}

/// The picture has the samples that it says, and no more pixels than were allowed.
inline void require_whole(const Image& image, std::int64_t max_pixels) {
  must(image.width >= 1 && image.height >= 1, "a picture has pixels");
  must(image.width <= max_pixels / image.height, "it is within the limit");
  must(image.channels >= 1 && image.channels <= 4, "it has 1 to 4 channels");
  must(image.bit_depth == 8 || image.bit_depth == 16 || image.has_floats(),
      "its samples have 8 or 16 bits or are floats");
  must(image.source_bit_depth >= 1 && image.source_bit_depth <= image.bit_depth,
      "they hold what the file had");
  const auto samples = static_cast<std::size_t>(image.width * image.height * image.channels);
  must(image.samples8.size() == (image.bit_depth == 8 ? samples : 0), "its 8-bit samples");
  must(image.samples16.size() == (image.bit_depth == 16 ? samples : 0), "its 16-bit samples");
  must(image.samples_float.size() == (image.has_floats() ? samples : 0), "its floats");
  must(!image.has_floats() || !image.has_alpha(), "floats have no alpha");
  must(image.frames >= 1, "it has frames");
  must(image.color.icc_profile.empty() || !image.color.cicp, "its colours are said in one form");
}

inline constexpr std::int64_t kMaxFuzzPixels = 1 << 14;  // larger ones find nothing and take time

/// The call ends, or refuses the file in one line that names it.
inline void take_or_refuse(const std::function<void(const File&)>& read, Bytes bytes) {
  try {
    read({.bytes = bytes, .name = "any", .max_pixels = kMaxFuzzPixels});
  } catch (const InvalidArgument& error) {
    const std::string_view words = error.what();
    must(words.starts_with("cannot read any: "), "an error names the file");
    must(words.find('\n') == words.npos, "an error is one line");
  }
}

/// The bytes are a whole picture, or are refused.
inline void read_any_bytes(Image (*read)(const File&), Bytes bytes) {
  take_or_refuse([read](const File& file) { require_whole(read(file), kMaxFuzzPixels); }, bytes);
}

/// The bytes are whole pictures, of which a few are looked at, until one is refused.
inline void read_any_bytes(void (*read_all)(const File&, const TakePicture&), Bytes bytes) {
  constexpr int kMaxFrames = 8;
  int frames = 0;
  const auto take = [&frames](const Image& picture) {
    require_whole(picture, kMaxFuzzPixels);
    return ++frames < kMaxFrames;
  };
  take_or_refuse([&](const File& file) { read_all(file, take); }, bytes);
}

}  // namespace similis::media
