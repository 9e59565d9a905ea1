// SPDX-License-Identifier: Apache-2.0
#include "src/media/video/stream_source.h"

#include <algorithm>

#include "src/media/io/gzip.h"
#include "src/media/picture/reader.h"
#include "src/media/video/y4m.h"
#include "src/media/volume/nifti_header.h"

namespace similis::media {
namespace {

constexpr std::size_t kSignatureBytes = 32;

// Files that begin like one of these are not raw, whatever --size says.
bool is_container(Bytes start) {
  const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  return text.substr(std::min<std::size_t>(4, text.size())).starts_with("ftyp") ||
         text.starts_with("\x1a\x45\xdf\xa3") ||
         (text.starts_with("RIFF") && text.size() >= 12 && text.substr(8, 4) == "AVI ");
}

class RawSource : public StreamSource {
 public:
  RawSource(std::unique_ptr<ByteStream> bytes, VideoFormat format)
      : StreamSource(std::move(bytes), format) {
    if (!stream().size()) return;
    expected_frames_ = *stream().size() / static_cast<std::int64_t>(format.frame_bytes());
  }

 private:
  std::string cut_words(std::size_t bytes) override {
    return fmt::format(
        "it ends {} bytes into frame {}, and a frame of {}×{} has {}; is it cut off, or --size or "
        "--pix-fmt wrong?",
        bytes, next_frame_, format_.width, format_.height, format_.frame_bytes());
  }
};

}  // namespace

StreamSource::StreamSource(std::unique_ptr<ByteStream> stream, VideoFormat format)
    : FrameSource(format, stream->name()), stream_(std::move(stream)) {}

bool StreamSource::read_bytes(std::vector<std::uint8_t>& bytes) {
  if (!begin_frame()) return false;
  const std::size_t count = stream_->read_frame(bytes, format_.frame_bytes());
  if (count == format_.frame_bytes()) {
    check_frame();
    return true;
  }
  if (stream_->is_cancelled()) return false;
  refuse({.bytes = {}, .name = name_}, "{}", cut_words(count));
}

std::string StreamSource::cut_words(std::size_t bytes) {
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
  const VideoFormat format{.width = raw.width, .height = raw.height, .pixels = raw.pixels};
  const File file{.bytes = {}, .name = stream->name()};
  require_size(file, format.width, format.height);
  if (stream->at_end()) refuse(file, "it is empty");
  return std::make_unique<RawSource>(std::move(stream), format);
}

OpenedMedia open_media(const std::string& path, const std::optional<RawVideo>& raw) {
  auto stream = std::make_unique<ByteStream>(path);
  const std::vector<std::uint8_t> start = stream->peek(kSignatureBytes);
  const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  if (text.starts_with(kY4mMagic)) return {.video = open_y4m(std::move(stream))};
  const bool may_be_volume = is_gzip(start) || nifti_header_length(start) > 0;
  const bool is_volume = may_be_volume && is_nifti(stream->peek(kNiftiStartBytes));
  // A damaged one is named as what it was meant to be.
  if (is_volume || (has_nifti_name(path) && known_format(start).empty())) {
    return {.volume = read_volume(*stream, path)};
  }
  if (raw && !is_container(start)) return {.video = open_raw(std::move(stream), *raw)};
  const bool may_be_video = path != "-" && stream->size() && !start.empty();
  if (may_be_video && known_format(start).empty()) {
    if (auto video = open_by_ffmpeg(path)) return {.video = std::move(video)};
  }
  const std::string name = stream->name();
  OpenedMedia media{.bytes = stream->read_to_end(kMaxFileBytes)};
  media.picture = read_image(media.bytes, name);
  return media;
}

}  // namespace similis::media
