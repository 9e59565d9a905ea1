// SPDX-License-Identifier: Apache-2.0
#include "src/media/crop.h"

#include <algorithm>

#include "src/core/require.h"

namespace similis::media {
namespace {

void require_rest(
    std::int64_t width, std::int64_t height, const Crop& crop, const std::string& name) {
  require(crop.left + crop.right < width && crop.top + crop.bottom < height,
      "the crop {},{},{},{} leaves nothing of {}, which is {}×{}", crop.left, crop.right, crop.top,
      crop.bottom, name, width, height);
}

template <class T>
std::vector<T> cropped_samples(const std::vector<T>& samples, const Image& image, const Crop& crop,
    std::int64_t width, std::int64_t height) {
  std::vector<T> out;
  out.reserve(static_cast<std::size_t>(width * height * image.channels));
  for (std::int64_t y = 0; y < height; ++y) {
    const auto first =
        samples.begin() + ((y + crop.top) * image.width + crop.left) * image.channels;
    out.insert(out.end(), first, first + width * image.channels);
  }
  return out;
}

}  // namespace

Image cropped(const Image& image, const Crop& crop, const std::string& name) {
  require_rest(image.width, image.height, crop, name);
  const std::int64_t width = image.width - crop.left - crop.right;
  const std::int64_t height = image.height - crop.top - crop.bottom;
  Image result{.width = width,
      .height = height,
      .channels = image.channels,
      .bit_depth = image.bit_depth,
      .source_bit_depth = image.source_bit_depth,
      .color = image.color,
      .format = image.format,
      .frames = image.frames};
  if (image.has_floats()) {
    result.samples_float = cropped_samples(image.samples_float, image, crop, width, height);
  } else if (image.bit_depth == 8) {
    result.samples8 = cropped_samples(image.samples8, image, crop, width, height);
  } else {
    result.samples16 = cropped_samples(image.samples16, image, crop, width, height);
  }
  return result;
}

VideoFormat cropped(const VideoFormat& format, const Crop& crop, const std::string& name) {
  require_rest(format.width, format.height, crop, name);
  const auto fits = [](std::int64_t margin, int shift) { return margin % (1 << shift) == 0; };
  const int x = format.pixels.chroma_x_shift, y = format.pixels.chroma_y_shift;
  require(format.pixels.color_planes == 1 || (fits(crop.left, x) && fits(crop.top, y)),
      "the crop {},{},{},{} would cut chroma samples of {}; its left margin must be a multiple of "
      "{} and its top margin one of {}",
      crop.left, crop.right, crop.top, crop.bottom, name, 1 << x, 1 << y);
  VideoFormat result = format;
  result.width -= crop.left + crop.right;
  result.height -= crop.top + crop.bottom;
  return result;
}

void crop_frame(
    const VideoFrame& frame, const VideoFormat& format, const Crop& crop, VideoFrame& out) {
  VideoFormat to = format;
  to.width -= crop.left + crop.right;
  to.height -= crop.top + crop.bottom;
  out.number = frame.number;
  out.bytes.resize(to.frame_bytes());
  const std::int64_t sample = format.pixels.bit_depth > 8 ? 2 : 1;
  const std::uint8_t* from_plane = frame.bytes.data();
  std::uint8_t* row = out.bytes.data();
  for (int plane = 0; plane < format.pixels.color_planes + format.pixels.has_alpha; ++plane) {
    const bool is_chroma = plane > 0 && plane < format.pixels.color_planes;
    const std::int64_t left = crop.left >> (is_chroma ? format.pixels.chroma_x_shift : 0);
    const std::int64_t top = crop.top >> (is_chroma ? format.pixels.chroma_y_shift : 0);
    const std::int64_t bytes = to.plane_width(plane) * sample;
    for (std::int64_t y = 0; y < to.plane_height(plane); ++y, row += bytes) {
      std::copy_n(from_plane + ((y + top) * format.plane_width(plane) + left) * sample, bytes, row);
    }
    from_plane += format.plane_bytes(plane);
  }
}

}  // namespace similis::media
