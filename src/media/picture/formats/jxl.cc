// SPDX-License-Identifier: Apache-2.0
// Reads JPEG XL with libjxl, which turns the picture upright itself and draws each frame of an
// animation over those before.
#include <jxl/decode.h>

#include <memory>

#include "src/media/io/loaded_library.h"
#include "src/media/picture/reader.h"

namespace similis::media {
namespace {

struct Jxl : LoadedLibrary {
  Jxl() : LoadedLibrary(SIMILIS_JXL_NAME) {}
  SIMILIS_LOADED_FUNCTION(JxlDecoderCloseInput)
  SIMILIS_LOADED_FUNCTION(JxlDecoderCreate)
  SIMILIS_LOADED_FUNCTION(JxlDecoderDestroy)
  SIMILIS_LOADED_FUNCTION(JxlDecoderGetBasicInfo)
  SIMILIS_LOADED_FUNCTION(JxlDecoderGetColorAsEncodedProfile)
  SIMILIS_LOADED_FUNCTION(JxlDecoderGetColorAsICCProfile)
  SIMILIS_LOADED_FUNCTION(JxlDecoderGetExtraChannelInfo)
  SIMILIS_LOADED_FUNCTION(JxlDecoderGetICCProfileSize)
  SIMILIS_LOADED_FUNCTION(JxlDecoderImageOutBufferSize)
  SIMILIS_LOADED_FUNCTION(JxlDecoderProcessInput)
  SIMILIS_LOADED_FUNCTION(JxlDecoderReset)
  SIMILIS_LOADED_FUNCTION(JxlDecoderSetImageOutBuffer)
  SIMILIS_LOADED_FUNCTION(JxlDecoderSetInput)
  SIMILIS_LOADED_FUNCTION(JxlDecoderSetUnpremultiplyAlpha)
  SIMILIS_LOADED_FUNCTION(JxlDecoderSubscribeEvents)
  SIMILIS_LOADED_FUNCTION(JxlDecoderVersion)
};

const Jxl& libjxl() {
  static const Jxl& library = *new Jxl;
  return library;
}

using Decoder = std::unique_ptr<JxlDecoder, decltype(&JxlDecoderDestroy)>;
constexpr int kMaxInteger = 16;  // bits of a sample

struct JxlFile {
  const File& file;
  Decoder decoder{libjxl().JxlDecoderCreate(nullptr), libjxl().JxlDecoderDestroy};
  JxlBasicInfo info{};
  JxlPixelFormat format{};
  std::unique_ptr<void, decltype(&std::free)> pixels{nullptr, &std::free};
  bool is_counted = false;

  void start(int events);
  void take_info(Image& image);
  void take_color(Image& image) const;
  void make_room();
  template <class T> void copy_samples(std::vector<T>& samples) const;
  Image picture(const Image& header) const;
  void read(const TakePicture& take);
};

void JxlFile::start(int events) {
  bool ok = decoder != nullptr;
  if (ok) {
    libjxl().JxlDecoderReset(decoder.get());
    ok = libjxl().JxlDecoderSubscribeEvents(decoder.get(), events) == JXL_DEC_SUCCESS &&
         libjxl().JxlDecoderSetUnpremultiplyAlpha(decoder.get(), JXL_TRUE) == JXL_DEC_SUCCESS &&
         libjxl().JxlDecoderSetInput(decoder.get(), file.bytes.data(), file.bytes.size()) ==
             JXL_DEC_SUCCESS;
  }
  if (!ok) refuse(file, "libjxl could not start");
  libjxl().JxlDecoderCloseInput(decoder.get());
}

void JxlFile::take_info(Image& image) {
  if (libjxl().JxlDecoderGetBasicInfo(decoder.get(), &info) != JXL_DEC_SUCCESS) {
    refuse_damaged(file, "libjxl finds no header");
  }
  require_size(file, info.xsize, info.ysize);
  if (info.exponent_bits_per_sample > 0 || info.bits_per_sample > kMaxInteger) {
    refuse(file, "it has {}-bit {} samples; they must be integers of at most {} bits",
        info.bits_per_sample, info.exponent_bits_per_sample ? "floating-point" : "integer",
        kMaxInteger);
  }
  for (std::uint32_t i = 0; i < info.num_extra_channels; ++i) {
    JxlExtraChannelInfo extra;
    if (libjxl().JxlDecoderGetExtraChannelInfo(decoder.get(), i, &extra) == JXL_DEC_SUCCESS &&
        extra.type == JXL_CHANNEL_BLACK) {
      refuse(file, "CMYK is not supported; convert the picture to RGB first");
    }
  }
  image.width = info.xsize;
  image.height = info.ysize;
  image.channels = static_cast<int>(info.num_color_channels) + (info.alpha_bits > 0);
  image.source_bit_depth = static_cast<int>(info.bits_per_sample);
  image.bit_depth = info.bits_per_sample > 8 ? 16 : 8;
  format = {.num_channels = static_cast<std::uint32_t>(image.channels),
      .data_type = image.bit_depth == 8 ? JXL_TYPE_UINT8 : JXL_TYPE_UINT16,
      .endianness = JXL_NATIVE_ENDIAN,
      .align = 0};
}

// The names of the encodings that H.273 also names; an ICC profile for the rest.
std::optional<Cicp> code_points(const JxlColorEncoding& encoding) {
  const bool is_grey = encoding.color_space == JXL_COLOR_SPACE_GRAY;
  if (encoding.white_point != JXL_WHITE_POINT_D65 ||
      encoding.transfer_function == JXL_TRANSFER_FUNCTION_GAMMA ||
      encoding.transfer_function == JXL_TRANSFER_FUNCTION_UNKNOWN) {
    return std::nullopt;
  }
  Cicp cicp{.primaries = 1, .transfer = static_cast<std::uint8_t>(encoding.transfer_function)};
  if (is_grey || encoding.primaries == JXL_PRIMARIES_SRGB) return cicp;
  if (encoding.color_space != JXL_COLOR_SPACE_RGB) return std::nullopt;
  if (encoding.primaries == JXL_PRIMARIES_2100) return Cicp{9, cicp.transfer};
  if (encoding.primaries == JXL_PRIMARIES_P3) return Cicp{12, cicp.transfer};  // its white is D65
  return std::nullopt;
}

void JxlFile::take_color(Image& image) const {
  constexpr auto kTarget = JXL_COLOR_PROFILE_TARGET_DATA;
  JxlColorEncoding encoding;
  if (libjxl().JxlDecoderGetColorAsEncodedProfile(decoder.get(), &format, kTarget, &encoding) ==
      JXL_DEC_SUCCESS) {
    image.color.cicp = code_points(encoding);
  }
  std::size_t size = 0;
  if (image.color.cicp || libjxl().JxlDecoderGetICCProfileSize(
                              decoder.get(), &format, kTarget, &size) != JXL_DEC_SUCCESS) {
    return;
  }
  image.color.icc_profile.resize(size);
  if (libjxl().JxlDecoderGetColorAsICCProfile(decoder.get(), &format, kTarget,
          image.color.icc_profile.data(), size) != JXL_DEC_SUCCESS) {
    refuse_damaged(file, "libjxl finds no colour profile");
  }
}

// Reserved, not touched: pages are claimed as pixels are decoded.
void JxlFile::make_room() {
  std::size_t bytes = 0;
  if (libjxl().JxlDecoderImageOutBufferSize(decoder.get(), &format, &bytes) != JXL_DEC_SUCCESS) {
    refuse_damaged(file, "libjxl cannot size its pixels");
  }
  pixels.reset(std::malloc(bytes));
  if (!pixels) throw std::bad_alloc();
  if (libjxl().JxlDecoderSetImageOutBuffer(decoder.get(), &format, pixels.get(), bytes) !=
      JXL_DEC_SUCCESS) {
    refuse_damaged(file, "libjxl cannot place its pixels");
  }
}

template <class T> void JxlFile::copy_samples(std::vector<T>& samples) const {
  const T* from = static_cast<const T*>(pixels.get());
  samples.assign(from, from + std::size_t{info.xsize} * info.ysize * format.num_channels);
}

std::int64_t count_frames(const File& file) {
  JxlFile again{.file = file};
  again.start(JXL_DEC_FRAME);
  std::int64_t frames = 0;
  JxlDecoderStatus status;
  while ((status = libjxl().JxlDecoderProcessInput(again.decoder.get())) == JXL_DEC_FRAME) ++frames;
  if (status != JXL_DEC_SUCCESS) refuse_damaged(file, "libjxl cannot find its last frame");
  return frames;
}

// libjxl spreads integers of depths other than 8 and 16 over the full range, through float. Takes
// them back to the codes they were, and spreads those exactly.
void spread_exactly(Image& image) {
  const int n = image.source_bit_depth;
  for (std::uint8_t& code : image.samples8) {
    code = static_cast<std::uint8_t>(rescale_code(rescale_code(code, 8, n), n, 8));
  }
  for (std::uint16_t& code : image.samples16) code = rescale_code(code, 16, n);
  rescale_to_16(image.samples16, n);
}

// The picture in `pixels`; `header` has the members that all pictures of the file share.
Image JxlFile::picture(const Image& header) const {
  Image image = header;
  if (image.bit_depth == 8) {
    copy_samples(image.samples8);
  } else {
    copy_samples(image.samples16);
  }
  if (image.source_bit_depth != image.bit_depth) spread_exactly(image);
  return image;
}

void JxlFile::read(const TakePicture& take) {
  Image header{.format = "JXL"};
  start(JXL_DEC_BASIC_INFO | JXL_DEC_COLOR_ENCODING | JXL_DEC_FULL_IMAGE);
  for (;;) {
    switch (libjxl().JxlDecoderProcessInput(decoder.get())) {
      case JXL_DEC_BASIC_INFO: take_info(header); break;
      case JXL_DEC_COLOR_ENCODING: take_color(header); break;
      case JXL_DEC_NEED_IMAGE_OUT_BUFFER: make_room(); break;
      case JXL_DEC_FULL_IMAGE:
        if (info.have_animation && !is_counted) header.frames = count_frames(file);
        is_counted = true;
        if (!take(picture(header)) || !info.have_animation) return;
        break;
      case JXL_DEC_SUCCESS: return;
      case JXL_DEC_NEED_MORE_INPUT: refuse_damaged(file, "libjxl: it ends too early");
      default: refuse_damaged(file, "libjxl could not decode it");
    }
  }
}

}  // namespace

void read_jxl_frames(const File& file, const TakePicture& take) {
  libjxl().require_loaded(file.name);
  JxlFile{.file = file}.read(take);
}

Image read_jxl(const File& file) { return first_picture(file, read_jxl_frames); }

std::string jxl_library() {
  if (!libjxl().problem.empty()) return libjxl().problem;
  const std::uint32_t version = libjxl().JxlDecoderVersion();
  return fmt::format("libjxl {}.{}.{}", version / 1000000, version / 1000 % 1000, version % 1000);
}

}  // namespace similis::media
