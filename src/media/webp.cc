// SPDX-License-Identifier: Apache-2.0
// Reads WebP with libwebp's defaults. Of an animation the first frame, on its canvas.
#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <memory>

#include "src/media/orientation.h"
#include "src/media/reader.h"

namespace similis::media {
namespace {

using Demuxer = std::unique_ptr<WebPDemuxer, decltype(&WebPDemuxDelete)>;
using Pixels = std::unique_ptr<std::uint8_t, decltype(&WebPFree)>;

// The first chunk of this name; empty if there is none.
std::vector<std::uint8_t> chunk(const WebPDemuxer* demuxer, const char* name) {
  WebPChunkIterator found;
  std::vector<std::uint8_t> data;
  if (WebPDemuxGetChunk(demuxer, name, 1, &found)) {
    data.assign(found.chunk.bytes, found.chunk.bytes + found.chunk.size);
  }
  WebPDemuxReleaseChunkIterator(&found);
  return data;
}

// One coded picture as RGB or RGBA, of the size that its container says.
Pixels decode(
    const File& file, Bytes coded, bool has_alpha, std::int64_t width, std::int64_t height) {
  int decoded_width = 0, decoded_height = 0;
  const auto decode_rgb = has_alpha ? WebPDecodeRGBA : WebPDecodeRGB;
  Pixels pixels(decode_rgb(coded.data(), coded.size(), &decoded_width, &decoded_height), &WebPFree);
  if (!pixels || decoded_width != width || decoded_height != height) {
    refuse_damaged(file, "libwebp could not decode it");
  }
  return pixels;
}

void decode_picture(const File& file, Image& image) {
  const Pixels pixels = decode(file, file.bytes, image.has_alpha(), image.width, image.height);
  const auto count = static_cast<std::size_t>(image.width * image.height * image.channels);
  image.samples8.assign(pixels.get(), pixels.get() + count);
}

// Places the first frame, RGBA, on its canvas, which is transparent, so that blending would change
// nothing. Not by WebPAnimDecoder, which fills two canvases before it looks at the frame, and
// rounds down the colours of what is partly transparent.
void decode_first_frame(const File& file, const WebPDemuxer* demuxer, Image& image) {
  WebPIterator frame{};
  const std::unique_ptr<WebPIterator, decltype(&WebPDemuxReleaseIterator)> owner(
      &frame, &WebPDemuxReleaseIterator);
  if (!WebPDemuxGetFrame(demuxer, 1, &frame)) refuse_damaged(file, "libwebp finds no first frame");
  const Pixels pixels =
      decode(file, {frame.fragment.bytes, frame.fragment.size}, true, frame.width, frame.height);
  const auto row_bytes = static_cast<std::size_t>(frame.width * image.channels);
  image.samples8.resize(static_cast<std::size_t>(image.width * image.height * image.channels));
  for (std::int64_t y = 0; y < frame.height; ++y) {
    const std::int64_t at = (frame.y_offset + y) * image.width + frame.x_offset;
    std::copy_n(pixels.get() + static_cast<std::size_t>(y) * row_bytes, row_bytes,
        image.samples8.data() + at * image.channels);
  }
}

}  // namespace

Image read_webp(const File& file) {
  const WebPData data{file.bytes.data(), file.bytes.size()};
  const Demuxer demuxer(WebPDemux(&data), &WebPDemuxDelete);
  WebPBitstreamFeatures features;
  if (!demuxer ||
      WebPGetFeatures(file.bytes.data(), file.bytes.size(), &features) != VP8_STATUS_OK) {
    refuse_damaged(file, "libwebp finds no whole picture in it");
  }
  const bool is_animated = features.has_animation != 0;
  Image image{.width = WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_WIDTH),
      .height = WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_HEIGHT),
      .channels = is_animated || features.has_alpha ? 4 : 3,
      .color = {.icc_profile = chunk(demuxer.get(), "ICCP")},
      .format = "WebP",
      .frames = WebPDemuxGetI(demuxer.get(), WEBP_FF_FRAME_COUNT)};
  require_size(file, image.width, image.height);
  if (is_animated) {
    decode_first_frame(file, demuxer.get(), image);
  } else {
    decode_picture(file, image);
  }
  apply_orientation(image, exif_orientation(chunk(demuxer.get(), "EXIF")));
  return image;
}

std::string webp_library() {
  const int version = WebPGetDecoderVersion();
  return fmt::format("libwebp {}.{}.{}", version >> 16, version >> 8 & 255, version & 255);
}

}  // namespace similis::media
