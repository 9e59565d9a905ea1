// SPDX-License-Identifier: Apache-2.0
// Reads WebP with libwebp's defaults, and draws the frames of an animation on its canvas.
#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <memory>

#include "src/media/picture/orientation.h"
#include "src/media/picture/reader.h"

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

// Draws one pixel over another, both with straight alpha. A pixel under a transparent one, and an
// opaque pixel on top, are kept exactly; other results are rounded to nearest.
void draw_over(const std::uint8_t* source, std::uint8_t* target) {
  const std::uint32_t above = source[3], below = target[3];
  if (above == 255 || below == 0) {
    std::copy_n(source, 4, target);
    return;
  }
  const std::uint32_t rest = below * (255 - above), alpha = above * 255 + rest;  // of 255·255
  for (std::size_t i = 0; i < 3; ++i) {
    const std::uint32_t color = source[i] * above * 255 + target[i] * rest;
    target[i] = static_cast<std::uint8_t>((color + alpha / 2) / alpha);
  }
  target[3] = static_cast<std::uint8_t>((alpha + 127) / 255);
}

// The canvas of an animation, RGBA, transparent at first. WebPAnimDecoder is not used: it fills
// two canvases before it looks at a frame, and rounds down the colours of translucent pixels.
class Canvas {
 public:
  Canvas(const File& file, Image& image) : file_(file), image_(image) {}

  void draw(const WebPIterator& frame) {
    const Pixels pixels =
        decode(file_, {frame.fragment.bytes, frame.fragment.size}, true, frame.width, frame.height);
    image_.samples8.resize(static_cast<std::size_t>(image_.width * image_.height * kChannels));
    const bool replaces = frame.blend_method == WEBP_MUX_NO_BLEND;
    for (std::int64_t y = 0; y < frame.height; ++y) {
      const std::uint8_t* from = pixels.get() + y * frame.width * kChannels;
      std::uint8_t* to = row_of(frame, y);
      for (std::int64_t at = 0; at < frame.width * kChannels; at += kChannels) {
        replaces ? void(std::copy_n(from + at, kChannels, to + at)) : draw_over(from + at, to + at);
      }
    }
  }

  // Makes the frame's area transparent, if the frame is to be disposed of before the next.
  void dispose(const WebPIterator& frame) {
    if (frame.dispose_method != WEBP_MUX_DISPOSE_BACKGROUND) return;
    for (std::int64_t y = 0; y < frame.height; ++y) {
      std::fill_n(row_of(frame, y), frame.width * kChannels, std::uint8_t{0});
    }
  }

 private:
  static constexpr std::int64_t kChannels = 4;
  std::uint8_t* row_of(const WebPIterator& frame, std::int64_t y) {
    const std::int64_t at = (frame.y_offset + y) * image_.width + frame.x_offset;
    return image_.samples8.data() + at * kChannels;
  }
  const File& file_;
  Image& image_;
};

// Draws each frame on the canvas, which is kept in the samples of `image`, and takes a copy.
void read_animation(
    const File& file, const WebPDemuxer* demuxer, Image& image, const TakePicture& take) {
  WebPIterator frame{};
  const std::unique_ptr<WebPIterator, decltype(&WebPDemuxReleaseIterator)> owner(
      &frame, &WebPDemuxReleaseIterator);
  if (!WebPDemuxGetFrame(demuxer, 1, &frame)) refuse_damaged(file, "libwebp finds no first frame");
  const int orientation = exif_orientation(chunk(demuxer, "EXIF"));
  Canvas canvas(file, image);
  do {
    canvas.draw(frame);
    Image picture = image;
    apply_orientation(picture, orientation);
    if (!take(std::move(picture))) return;
    canvas.dispose(frame);
  } while (WebPDemuxNextFrame(&frame));
}

}  // namespace

void read_webp_frames(const File& file, const TakePicture& take) {
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
  if (is_animated) return read_animation(file, demuxer.get(), image, take);
  decode_picture(file, image);
  apply_orientation(image, exif_orientation(chunk(demuxer.get(), "EXIF")));
  take(std::move(image));
}

Image read_webp(const File& file) { return first_picture(file, read_webp_frames); }

std::string webp_library() {
  const int version = WebPGetDecoderVersion();
  return fmt::format("libwebp {}.{}.{}", version >> 16, version >> 8 & 255, version & 255);
}

}  // namespace similis::media
