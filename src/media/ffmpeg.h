// SPDX-License-Identifier: Apache-2.0
// What ffprobe said of a file, kept apart so that tests and the fuzzer reach the parser, and what
// calls of ffmpeg have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/media/image.h"
#include "src/media/program.h"

namespace similis::media {

/// The first video stream of a file.
struct Probe {
  std::string codec;
  std::string container;               ///< ffmpeg's name, such as "matroska,webm" or "bmp_pipe"
  std::string pixel_format;            ///< ffmpeg's name, such as "yuv420p10le"
  std::int64_t width = 0, height = 0;  ///< as stored, before a rotation
  bool is_turned = false;              ///< by 90° either way: ffmpeg's output is height x width
  std::int64_t frames = 0;             ///< 0 if they were not counted
  std::int64_t expected_frames = 0;    ///< as the header says; 0 if it says nothing
  int channels = 0;                    ///< as Image::channels
  int bit_depth = 0;                   ///< of the widest component
  bool is_float = false;
  std::string primaries, transfer;    ///< ffmpeg's names; empty if unknown
  std::string matrix, range, siting;  ///< likewise; "unknown" and "unspecified" are empty
};

/// Reads the JSON that ffprobe prints for read_by_ffmpeg's arguments; empty if it names no video
/// stream with a size and a known pixel format. Throws nothing.
std::optional<Probe> parse_probe(std::string_view json);

/// What ffmpeg said last, without what names its own parts; how it ended if it said nothing.
std::string last_words(const ProgramResult& result);

/// The option to which "passthrough" says that no frame is to be repeated or dropped.
const char* keep_all_frames_option();

/// H.273's numbers for ffmpeg's names; empty for a name that has none here.
std::optional<Cicp> code_points(const Probe& probe);

}  // namespace similis::media
