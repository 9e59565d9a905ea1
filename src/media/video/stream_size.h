// SPDX-License-Identifier: Apache-2.0
// The size of a coded video stream.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace similis::media {

struct StreamSize {
  std::int64_t bytes = 0;
  double seconds = 0;  ///< from the first frame's time to the end of the last
};

/// The first video stream of a file, of which ffmpeg copies the packets. Empty if ffmpeg is not
/// there, cannot read the file, or names no times.
std::optional<StreamSize> coded_stream_size(const std::string& path);

/// Adds up what ffmpeg's muxer framecrc printed: "#tb 0: 1/12800", then for each packet its
/// stream, decoding time, time, duration, bytes and checksum. Throws nothing.
std::optional<StreamSize> parse_packets(std::string_view text);

}  // namespace similis::media
