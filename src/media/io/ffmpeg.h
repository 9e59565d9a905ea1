// SPDX-License-Identifier: Apache-2.0
// Parsers for the output of ffprobe, or of ffmpeg alone, about a file (tests and the fuzzer call
// them), and the parts that all calls of ffmpeg share.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/media/io/child_process.h"
#include "src/media/picture/image.h"
#include "src/media/picture/reader.h"

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
  std::string rate;                    ///< frames per second, such as "30000/1001"; or ""
  int channels = 0;                    ///< as Image::channels
  int bit_depth = 0;                   ///< of the widest component
  bool is_float = false;
  std::string primaries, transfer;    ///< ffmpeg's names; empty if unknown
  std::string matrix, range, siting;  ///< likewise; "unknown" and "unspecified" are empty
  std::optional<bool> has_profile;    ///< ICC's; empty if it was not asked
};

constexpr std::size_t kMaxProbeBytes = std::size_t{1} << 22;  // ffprobe prints about 200 kB

/// ffmpeg's description of a pixel format.
struct PixelLayout {
  std::int64_t components = 0;
  bool has_alpha = false, has_palette = false;
  std::int64_t bit_depth = 0;  ///< of the widest component
};

/// Writes the format's channels and depth, and whether it has floats, into the probe. False if it
/// is no picture.
bool describe_pixels(const PixelLayout& layout, Probe& probe);

/// The tag, or "" for ffmpeg's words for unknown.
std::string said(const std::string& word);

/// Reads the JSON that ffprobe prints for read_by_ffmpeg's arguments; empty if it names no video
/// stream with a size and a known pixel format. Throws nothing.
std::optional<Probe> parse_probe(std::string_view json);

/// The same from the log of ffmpeg's filter showinfo, what its muxer framecrc printed, and its list
/// of pixel formats. Throws nothing.
std::optional<Probe> parse_report(
    std::string_view log, std::string_view packets, std::string_view pixel_formats);

struct ProbeRequest {
  std::vector<std::string> input;    ///< options of the input and the input, for either program
  std::vector<std::string> entries;  ///< of ffprobe, for the entries to show
  std::span<const std::uint8_t> bytes = {};  ///< standard input
  bool counts_frames = false;
  /// Refuses sizes beyond the limit, before anything is decoded.
  std::function<void(std::int64_t width, std::int64_t height)> require_size;
};

struct Probed {
  std::optional<Probe> probe;
  ProgramResult result;  ///< `errors` has those that the program logged
};

/// Probes a file with the ffprobe that lies beside ffmpeg, or with ffmpeg if there is none there or
/// SIMILIS_FFMPEG is set.
/// Empty if neither is found.
std::optional<Probed> probe_by_programs(const ProbeRequest& request);
std::optional<Probed> probe_by_ffmpeg(const ProbeRequest& request);

/// SIMILIS_FFMPEG if it is set, else "ffmpeg", to be found on PATH.
std::string ffmpeg_command();

/// Refuses a file because ffmpeg is missing; `what` names the kind of file that needs it.
[[noreturn]] void refuse_without_ffmpeg(const File& file, const char* what);

/// The last line that ffmpeg logged, without its own prefixes, or its exit status if it logged
/// none.
std::string last_message(const ProgramResult& result);

/// The option that, with "passthrough", keeps ffmpeg from repeating or dropping frames.
const char* keep_all_frames_option();

/// The code points of H.273 for ffmpeg's names; empty for other names.
std::optional<Cicp> code_points(const Probe& probe);

}  // namespace similis::media
