// SPDX-License-Identifier: Apache-2.0
#include "src/media/video/stream_size.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "src/media/io/child_process.h"
#include "src/media/io/ffmpeg.h"
#include "src/media/video/video.h"

namespace similis::media {
namespace {

constexpr std::size_t kMaxPacketBytes = std::size_t{1} << 28;  // 60 bytes a packet

// The first five numbers of a packet's line.
std::optional<std::array<std::int64_t, 5>> parse_packet(std::string_view line) {
  std::array<std::int64_t, 5> numbers{};
  for (std::int64_t& number : numbers) {
    line.remove_prefix(std::min(line.find_first_not_of(", "), line.size()));
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    if (error != std::errc{}) return std::nullopt;
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  }
  return numbers;
}

}  // namespace

std::optional<StreamSize> parse_packets(std::string_view text) {
  constexpr std::string_view kTimeBase = "#tb 0: ";
  FrameRate tick;  // seconds as a fraction
  StreamSize size;
  std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.starts_with(kTimeBase)) tick = parse_frame_rate(line.substr(kTimeBase.size()));
    const auto packet = line.starts_with('#') ? std::nullopt : parse_packet(line);
    if (!packet) continue;
    const auto& [stream, decoded, time, duration, bytes] = *packet;
    if (first == std::numeric_limits<std::int64_t>::max()) last = time;
    first = std::min(first, time);
    last = std::max(last, time + duration);
    size.bytes += bytes;
  }
  if (size.bytes <= 0 || !tick.is_known() || last <= first) return std::nullopt;
  size.seconds = static_cast<double>(last - first) * tick.value();
  return size;
}

std::optional<StreamSize> coded_stream_size(const std::string& path) {
  const auto result = run_program(
      {ffmpeg_command(), "-nostdin", "-v", "error", "-protocol_whitelist", "file,pipe", "-i",
          "file:" + path, "-map", "0:V:0", "-c", "copy", "-f", "framecrc", "pipe:1"},
      {}, {.output_bytes = kMaxPacketBytes});
  if (!result || !result->succeeded) return std::nullopt;
  return parse_packets(
      {reinterpret_cast<const char*>(result->output.data()), result->output.size()});
}

}  // namespace similis::media
