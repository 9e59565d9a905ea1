// SPDX-License-Identifier: Apache-2.0
// Reads AVIF with libavif: its own conversion from YCbCr, in float with bilinear chroma, rather
// than libyuv's faster and coarser one, to RGB of the depth that the file has. Crop, rotation and
// mirroring are applied; EXIF orientation is not, as the format says.
#include <avif/avif.h>

#include <algorithm>
#include <memory>

#include "src/media/io/loaded_library.h"
#include "src/media/picture/orientation.h"
#include "src/media/picture/reader.h"

namespace similis::media {
namespace {

struct Avif : LoadedLibrary {
  Avif() : LoadedLibrary(SIMILIS_AVIF_NAME) {}
  SIMILIS_LOADED_FUNCTION(avifCropRectConvertCleanApertureBox)
  SIMILIS_LOADED_FUNCTION(avifDecoderCreate)
  SIMILIS_LOADED_FUNCTION(avifDecoderDestroy)
  SIMILIS_LOADED_FUNCTION(avifDecoderNextImage)
  SIMILIS_LOADED_FUNCTION(avifDecoderParse)
  SIMILIS_LOADED_FUNCTION(avifDecoderSetIOMemory)
  SIMILIS_LOADED_FUNCTION(avifImageYUVToRGB)
  SIMILIS_LOADED_FUNCTION(avifRGBFormatChannelCount)
  SIMILIS_LOADED_FUNCTION(avifRGBImagePixelSize)
  SIMILIS_LOADED_FUNCTION(avifRGBImageSetDefaults)
  SIMILIS_LOADED_FUNCTION(avifResultToString)
  SIMILIS_LOADED_FUNCTION(avifVersion)
};

const Avif& libavif() {
  static const Avif& library = *new Avif;
  return library;
}

using Decoder = std::unique_ptr<avifDecoder, decltype(&avifDecoderDestroy)>;

void require_ok(const File& file, avifResult result) {
  if (result != AVIF_RESULT_OK) refuse_damaged(file, libavif().avifResultToString(result));
}

// The rectangle of a clean aperture, or all.
avifCropRect visible_part(const File& file, const avifImage& picture) {
  avifCropRect part{0, 0, picture.width, picture.height};
  if (!(picture.transformFlags & AVIF_TRANSFORM_CLAP)) return part;
  avifDiagnostics diagnostics{};
  if (!libavif().avifCropRectConvertCleanApertureBox(
          &part, &picture.clap, picture.width, picture.height, picture.yuvFormat, &diagnostics)) {
    refuse_damaged(file, diagnostics.error);
  }
  return part;
}

// The orientation in EXIF's numbers: irot turns anticlockwise, then imir swaps top and bottom or
// left and right.
int orientation_of(const avifImage& picture) {
  static constexpr int kTurned[] = {1, 8, 3, 6};
  static constexpr int kTurnedAndFlipped[] = {4, 5, 2, 7};
  static constexpr int kTurnedAndMirrored[] = {2, 7, 4, 5};
  const int turns = picture.transformFlags & AVIF_TRANSFORM_IROT ? picture.irot.angle & 3 : 0;
  if (!(picture.transformFlags & AVIF_TRANSFORM_IMIR)) return kTurned[turns];
#if AVIF_VERSION_MAJOR >= 1
  const bool swaps_rows = picture.imir.axis == 0;
#else
  const bool swaps_rows = picture.imir.mode == 0;
#endif
  return swaps_rows ? kTurnedAndFlipped[turns] : kTurnedAndMirrored[turns];
}

ColorSpace color_of(const avifImage& picture) {
  if (picture.icc.size)
    return {.icc_profile = {picture.icc.data, picture.icc.data + picture.icc.size}};
  return {.cicp = Cicp{.primaries = static_cast<std::uint8_t>(picture.colorPrimaries),
              .transfer = static_cast<std::uint8_t>(picture.transferCharacteristics)}};
}

// Copies the visible part, and one channel only if the picture is grey.
template <class T>
void copy_samples(
    const avifRGBImage& rgb, const avifCropRect& part, int channels, std::vector<T>& samples) {
  const std::size_t rgb_channels = libavif().avifRGBFormatChannelCount(rgb.format);
  samples.reserve(std::size_t{part.width} * part.height * static_cast<std::size_t>(channels));
  for (std::uint32_t y = 0; y < part.height; ++y) {
    const std::uint8_t* row = rgb.pixels + std::size_t{part.y + y} * rgb.rowBytes;
    const T* pixel = reinterpret_cast<const T*>(row) + part.x * rgb_channels;
    if (channels >= 3) {
      samples.insert(samples.end(), pixel, pixel + part.width * rgb_channels);
      continue;
    }
    for (std::uint32_t x = 0; x < part.width; ++x, pixel += rgb_channels) {
      samples.push_back(pixel[0]);
      if (channels == 2) samples.push_back(pixel[3]);
    }
  }
}

Image converted(const File& file, const avifImage& picture) {
  const bool is_grey = picture.yuvFormat == AVIF_PIXEL_FORMAT_YUV400;
  const bool has_alpha = picture.alphaPlane != nullptr;
  const avifCropRect part = visible_part(file, picture);
  Image image{.width = part.width,
      .height = part.height,
      .channels = (is_grey ? 1 : 3) + has_alpha,
      .bit_depth = picture.depth > 8 ? 16 : 8,
      .source_bit_depth = static_cast<int>(picture.depth),
      .color = color_of(picture),
      .format = "AVIF"};
  avifRGBImage rgb;
  libavif().avifRGBImageSetDefaults(&rgb, &picture);
  rgb.format = has_alpha ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
  rgb.chromaUpsampling = AVIF_CHROMA_UPSAMPLING_BILINEAR;
  rgb.avoidLibYUV = AVIF_TRUE;
  std::vector<std::uint8_t> pixels(
      std::size_t{picture.width} * picture.height * libavif().avifRGBImagePixelSize(&rgb));
  rgb.rowBytes = picture.width * libavif().avifRGBImagePixelSize(&rgb);
  rgb.pixels = pixels.data();
  require_ok(file, libavif().avifImageYUVToRGB(&picture, &rgb));
  if (image.bit_depth == 8) {
    copy_samples(rgb, part, image.channels, image.samples8);
  } else {
    copy_samples(rgb, part, image.channels, image.samples16);
    rescale_to_16(image.samples16, image.source_bit_depth);
  }
  return image;
}

}  // namespace

void read_avif_frames(const File& file, const TakePicture& take) {
  libavif().require_loaded(file.name);
  const Decoder decoder(libavif().avifDecoderCreate(), libavif().avifDecoderDestroy);
  if (!decoder) refuse(file, "libavif could not start: out of memory");
  decoder->imageSizeLimit = static_cast<std::uint32_t>(
      std::min<std::int64_t>(file.max_pixels, AVIF_DEFAULT_IMAGE_SIZE_LIMIT));
  decoder->ignoreExif = decoder->ignoreXMP = AVIF_TRUE;
  require_ok(
      file, libavif().avifDecoderSetIOMemory(decoder.get(), file.bytes.data(), file.bytes.size()));
  require_ok(file, libavif().avifDecoderParse(decoder.get()));
  require_size(file, decoder->image->width, decoder->image->height);
  // libavif enlarges a coded picture to the size that its container says.
  require_density(file, decoder->image->width, decoder->image->height);
  bool is_wanted = true;
  for (int i = 0; is_wanted && i < std::max(1, decoder->imageCount); ++i) {
    require_ok(file, libavif().avifDecoderNextImage(decoder.get()));
    require_size(file, decoder->image->width, decoder->image->height);
    Image image = converted(file, *decoder->image);
    image.frames = decoder->imageCount;
    apply_orientation(image, orientation_of(*decoder->image));
    is_wanted = take(std::move(image));
  }
}

Image read_avif(const File& file) { return first_picture(file, read_avif_frames); }

std::string avif_library() {
  if (!libavif().problem.empty()) return libavif().problem;
  return fmt::format("libavif {}", libavif().avifVersion());
}

}  // namespace similis::media
