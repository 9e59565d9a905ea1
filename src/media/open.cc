// SPDX-License-Identifier: Apache-2.0
#include "src/media/open.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "src/core/counted.h"
#include "src/core/require.h"
#include "src/media/io/gzip.h"
#include "src/media/picture/reader.h"
#include "src/media/picture/sequence.h"
#include "src/media/video/stream_source.h"
#include "src/media/video/y4m.h"
#include "src/media/volume/nifti_header.h"
#include "src/media/volume/text_volume.h"

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

}  // namespace

OpenedMedia open_media(const std::string& path, const std::optional<RawVideo>& raw) {
  if (std::vector<std::string> files = sequence_files(path); !files.empty()) {
    OpenedMedia media{.picture = read_image(files.front())};
    require(media.picture->frames == 1, "{} has {}; a sequence takes pictures of one frame",
        files.front(), counted(media.picture->frames, "frame"));
    media.picture->frames = static_cast<std::int64_t>(files.size());
    media.files = std::move(files);
    return media;
  }
  auto stream = std::make_unique<ByteStream>(path);
  const std::vector<std::uint8_t> start = stream->peek(kSignatureBytes);
  const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  if (text.starts_with(kY4mMagic)) return {.video = open_y4m(std::move(stream))};
  const bool may_be_volume = is_gzip(start) || nifti_header_length(start) > 0;
  const bool is_volume = may_be_volume && is_nifti(stream->peek(kNiftiStartBytes));
  // A damaged volume is read too, so that the error says what is wrong with it.
  if (is_volume || is_text_volume(start) || (has_nifti_name(path) && known_format(start).empty())) {
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
