// SPDX-License-Identifier: Apache-2.0
#include "src/media/video/stream_source.h"

#include <algorithm>
#include <array>
#include <utility>

#include "src/media/picture/reader.h"

namespace similis::media {
namespace {

class RawSource : public StreamSource {
 public:
  RawSource(std::unique_ptr<ByteStream> bytes, const RawVideo& raw, const VideoFormat& format)
      : StreamSource(std::move(bytes), format), raw_(raw) {
    if (!stream().size()) return;
    expected_frames_ = *stream().size() / static_cast<std::int64_t>(format.frame_bytes());
  }

 private:
  std::string truncation_message(std::size_t bytes) override {
    return fmt::format(
        "frame {} has {} of its {} bytes ({}×{} pixels); the file is cut off, or --size or "
        "--pix-fmt is wrong",
        next_frame_, bytes, format_.frame_bytes(), format_.width, format_.height);
  }
  void arrange(std::vector<std::uint8_t>& bytes) override { unpack(raw_, bytes); }
  bool may_exceed_depth() const override {
    return raw_.unused_bits == 0 && StreamSource::may_exceed_depth();
  }

  RawVideo raw_;
};

}  // namespace

StreamSource::StreamSource(std::unique_ptr<ByteStream> stream, VideoFormat format)
    : FrameSource(format, stream->name()), stream_(std::move(stream)) {}

bool StreamSource::read_bytes(std::vector<std::uint8_t>& bytes) {
  if (!begin_frame()) return false;
  std::size_t count = stream_->read_frame(bytes, kept_bytes());
  if (count == kept_bytes()) count += read_over(format_.frame_bytes() - count);
  if (count == format_.frame_bytes()) {
    check_frame();
    arrange(bytes);
    return true;
  }
  if (stream_->is_cancelled()) return false;
  refuse({.bytes = {}, .name = name_}, "{}", truncation_message(count));
}

// Returns the number of bytes that were there, of planes that are not kept.
std::size_t StreamSource::read_over(std::size_t count) {
  if (!may_exceed_depth()) return stream_->skip(count);
  std::array<std::uint8_t, std::size_t{1} << 15> samples;
  std::size_t done = 0;
  while (done < count) {
    const std::size_t wanted = std::min(samples.size(), count - done);
    const std::size_t taken = stream_->read(samples.data(), wanted);
    require_depth(samples.data(), taken);
    done += taken;
    if (taken < wanted) break;
  }
  return done;
}

std::string StreamSource::truncation_message(std::size_t bytes) {
  return fmt::format(
      "it is cut off in frame {}, after {} of {} bytes", next_frame_, bytes, format_.frame_bytes());
}

std::optional<std::string> read_line(ByteStream& stream, std::size_t limit) {
  std::string line;
  for (std::uint8_t byte = 0; line.size() <= limit && stream.read(&byte, 1) == 1;) {
    if (byte == '\n') return line;
    line += static_cast<char>(byte);
  }
  return std::nullopt;
}

std::unique_ptr<FrameSource> open_raw(std::unique_ptr<ByteStream> stream, const RawVideo& raw) {
  VideoFormat format{
      .width = raw.width, .height = raw.height, .pixels = raw.pixels, .rate = raw.rate};
  if (raw.is_full_range) format.color.range = "pc";
  const File file{.bytes = {}, .name = stream->name()};
  require_size(file, format.width, format.height);
  if (stream->at_end()) refuse(file, "it is empty");
  return std::make_unique<RawSource>(std::move(stream), raw, format);
}

}  // namespace similis::media
