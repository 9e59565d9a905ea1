// SPDX-License-Identifier: Apache-2.0
#include "src/media/video/y4m.h"

#include <algorithm>
#include <charconv>

#include "src/media/picture/reader.h"
#include "src/media/video/stream_source.h"

namespace similis::media {
namespace {

std::int64_t parse_side(std::string_view text, char parameter, const File& file) {
  std::int64_t side = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), side);
  if (error != std::errc{} || end != text.data() + text.size()) {
    refuse(file, "its header has {}{}; {} must be a number", parameter, text,
        parameter == 'W' ? "the width" : "the height");
  }
  return side;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return result;
}

// In ffmpeg's words: "420p10" is yuv420p10, "420jpeg" yuv420p, "mono12" gray12.
std::optional<PixelFormat> parse_color(const std::string& tag) {
  if (tag.starts_with("mono")) return pixel_format("gray" + tag.substr(4));
  if (tag == "444alpha") return pixel_format("yuva444p");
  if (tag == "420jpeg" || tag == "420mpeg2" || tag == "420paldv") return pixel_format("yuv420p");
  if (tag.size() < 3 || (tag.size() > 3 && tag[3] != 'p') || tag.size() == 4) return std::nullopt;
  return pixel_format("yuv" + tag.substr(0, 3) + "p" + (tag.size() > 4 ? tag.substr(4) : ""));
}

// The chroma siting that tags such as "420jpeg" stand for.
std::string siting_of(const std::string& tag) {
  if (tag == "420jpeg") return "center";
  if (tag == "420mpeg2") return "left";
  return tag == "420paldv" ? "topleft" : "";
}

class Y4mSource : public StreamSource {
 public:
  Y4mSource(std::unique_ptr<ByteStream> stream, VideoFormat format)
      : StreamSource(std::move(stream), format) {
    constexpr std::int64_t kFrameLine = 6;  // "FRAME" and the line's end; few writers add to it
    const auto frame = static_cast<std::int64_t>(format.frame_bytes()) + kFrameLine;
    if (this->stream().size()) expected_frames_ = *this->stream().size() / frame;
  }

 private:
  bool begin_frame() override {
    if (stream().at_end()) return false;
    const std::optional<std::string> line = read_line(stream(), kMaxY4mLine);
    const bool is_frame =
        line && line->starts_with("FRAME") && (line->size() == 5 || line->at(5) == ' ');
    if (is_frame) return true;
    if (stream().at_end()) refuse({.bytes = {}, .name = name_}, "{}", truncation_message(0));
    refuse({.bytes = {}, .name = name_}, "frame {} does not begin with a FRAME line", next_frame_);
  }
};

}  // namespace

VideoFormat parse_y4m_header(std::string_view line, const std::string& name) {
  const File file{.bytes = {}, .name = name};
  VideoFormat format;
  std::string color, extension_color;
  if (!line.starts_with(kY4mMagic)) refuse(file, "it does not begin with {}", kY4mMagic);
  for (line.remove_prefix(kY4mMagic.size()); !line.empty();) {
    const std::string_view word = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(line.size(), word.size() + 1));
    if (word.starts_with('W')) format.width = parse_side(word.substr(1), 'W', file);
    if (word.starts_with('H')) format.height = parse_side(word.substr(1), 'H', file);
    if (word.starts_with('F')) format.rate = parse_frame_rate(word.substr(1));
    if (word.starts_with('C')) color = word.substr(1);
    if (word == "XCOLORRANGE=FULL") format.color.range = "pc";
    if (word == "XCOLORRANGE=LIMITED") format.color.range = "tv";
    if (word.starts_with("XYSCSS=")) extension_color = lower(word.substr(7));
  }
  if (color.empty()) color = extension_color;
  if (color.empty()) color = "420";
  const std::optional<PixelFormat> pixels = parse_color(color);
  if (!pixels) refuse(file, "its colour tag is {}, which is not supported", color);
  format.pixels = *pixels;
  format.color.siting = siting_of(color);
  require_size(file, format.width, format.height);
  return format;
}

std::unique_ptr<FrameSource> open_y4m(std::unique_ptr<ByteStream> stream) {
  const std::optional<std::string> line = read_line(*stream, kMaxY4mLine);
  if (!line) {
    refuse({.bytes = {}, .name = stream->name()},
        "its first line is longer than {} bytes or cut off", kMaxY4mLine);
  }
  const VideoFormat format = parse_y4m_header(*line, stream->name());
  return std::make_unique<Y4mSource>(std::move(stream), format);
}

}  // namespace similis::media
