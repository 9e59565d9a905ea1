// SPDX-License-Identifier: Apache-2.0
// Reads WebP with libwebp's defaults. Of an animation the first frame, on its canvas.
#include <webp/decode.h>
#include <webp/demux.h>

#include <memory>

#include "src/media/orientation.h"
#include "src/media/reader.h"

namespace similis::media {
namespace {

using Demuxer = std::unique_ptr<WebPDemuxer, decltype(&WebPDemuxDelete)>;
using Animation = std::unique_ptr<WebPAnimDecoder, decltype(&WebPAnimDecoderDelete)>;

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

void decode_picture(const File& file, bool has_alpha, Image& image) {
  const auto decode = has_alpha ? WebPDecodeRGBA : WebPDecodeRGB;
  int width = 0, height = 0;
  const std::unique_ptr<std::uint8_t, decltype(&WebPFree)> pixels(
      decode(file.bytes.data(), file.bytes.size(), &width, &height), &WebPFree);
  if (!pixels || width != image.width || height != image.height) {
    refuse_damaged(file, "libwebp could not decode it");
  }
  const auto count = static_cast<std::size_t>(image.width * image.height * image.channels);
  image.samples8.assign(pixels.get(), pixels.get() + count);
}

void decode_first_frame(const File& file, Image& image) {
  const WebPData data{file.bytes.data(), file.bytes.size()};
  const Animation animation(WebPAnimDecoderNew(&data, nullptr), &WebPAnimDecoderDelete);
  std::uint8_t* canvas = nullptr;
  int milliseconds = 0;
  if (!animation || !WebPAnimDecoderGetNext(animation.get(), &canvas, &milliseconds)) {
    refuse_damaged(file, "libwebp could not decode its first frame");
  }
  const auto count = static_cast<std::size_t>(image.width * image.height * image.channels);
  image.samples8.assign(canvas, canvas + count);
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
    decode_first_frame(file, image);
  } else {
    decode_picture(file, features.has_alpha != 0, image);
  }
  apply_orientation(image, exif_orientation(chunk(demuxer.get(), "EXIF")));
  return image;
}

std::string webp_library() {
  const int version = WebPGetDecoderVersion();
  return fmt::format("libwebp {}.{}.{}", version >> 16, version >> 8 & 255, version & 255);
}

}  // namespace similis::media
