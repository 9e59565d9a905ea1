// SPDX-License-Identifier: Apache-2.0
// The parts that the readers of all formats share: the file, its refusal, and the step from its
// code values to those of an Image. Each reader is one function in a file of its own and sees only
// bytes.
//
// A hostile header costs nothing: require_size comes before any memory, and samples are appended
// row by row to memory that is only reserved, so that pages are touched as pixels are decoded.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "similis/error.hpp"
#include "src/media/picture/decode.h"
#include "src/media/picture/image.h"

namespace similis::media {

using Bytes = std::span<const std::uint8_t>;

/// The content of a file, its name in errors, and the largest picture it may have.
struct File {
  Bytes bytes;
  std::string name;
  std::int64_t max_pixels = kMaxPixels;
};

/// Throws InvalidArgument("cannot read NAME: …").
template <class... Args>
[[noreturn]] void refuse(const File& file, fmt::format_string<Args...> reason, Args&&... args) {
  throw InvalidArgument(fmt::format(
      "cannot read {}: {}", file.name, fmt::format(reason, std::forward<Args>(args)...)));
}

/// A library's message with line ends and the like replaced by a space: some have several lines,
/// some quote the file.
std::string one_line(std::string_view words);

/// Refuses a file whose decoder gave up, with the decoder's words.
[[noreturn]] void refuse_damaged(const File& file, std::string_view words);

/// Refuses sizes beyond the file's limit and decode.h's.
void require_size(const File& file, std::int64_t width, std::int64_t height);

/// Refuses sizes beyond kMaxPixelsPerByte.
void require_density(const File& file, std::int64_t width, std::int64_t height);

/// v of n bits as a code value of m bits: v·(2^m - 1)/(2^n - 1), rounded to nearest.
constexpr std::uint16_t rescale_code(std::uint32_t v, int n, int m) {
  const std::uint32_t from = (1u << n) - 1, to = (1u << m) - 1;
  return static_cast<std::uint16_t>((std::uint64_t{v} * to + from / 2) / from);
}

/// Takes every 16-bit sample from n bits to 16.
void rescale_to_16(std::vector<std::uint16_t>& codes, int n);

/// The format that the first bytes name: "PNG", "JPEG", "WebP", "AVIF", "JXL", "TIFF", "EXR",
/// "Netpbm", "PFM", "BMP" or "QOI"; empty if they name none of these.
std::string_view known_format(Bytes bytes);

Image read_png(const File& file);
Image read_jpeg(const File& file);
Image read_webp(const File& file);
Image read_avif(const File& file);
Image read_jxl(const File& file);
Image read_tiff(const File& file);
Image read_exr(const File& file);
Image read_netpbm(const File& file);
Image read_pfm(const File& file);
Image read_bmp(const File& file);
Image read_qoi(const File& file);
Image read_by_ffmpeg(const File& file);

/// All frames or pages, each on the whole canvas, in order, until `take` returns false; later ones
/// are not decoded.
void read_webp_frames(const File& file, const TakePicture& take);
void read_avif_frames(const File& file, const TakePicture& take);
void read_jxl_frames(const File& file, const TakePicture& take);
void read_tiff_pages(const File& file, const TakePicture& take);
void read_netpbm_pictures(const File& file, const TakePicture& take);
/// Reads the frames of an animation whose first frame is `first`; ffmpeg does not pass on colours.
void read_frames_by_ffmpeg(const File& file, const Image& first, const TakePicture& take);

/// The first that a reader of all gives.
Image first_picture(const File& file, void (*read_all)(const File&, const TakePicture&));

/// Name and version of what reads a format; empty for ffmpeg if it is not on PATH.
std::string png_library();
std::string jpeg_library();
std::string webp_library();
std::string avif_library();
std::string jxl_library();
std::string tiff_library();
std::string exr_library();
std::string ffmpeg_program();

}  // namespace similis::media
