// SPDX-License-Identifier: Apache-2.0
// Reads pictures: PNG, JPEG, PBM, PGM, PPM, PAM, PFM, BMP and QOI; WebP, AVIF, JXL, TIFF and EXR if
// this build has their libraries; all other formats through the programs ffprobe and ffmpeg.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "src/media/picture/image.h"

namespace similis::media {

/// Limits on the sizes in a header, checked before memory is claimed.
inline constexpr std::int64_t kMaxPixels = std::int64_t{1} << 28;   ///< of one picture
inline constexpr std::int64_t kMaxSide = std::int64_t{1} << 20;     ///< width or height
inline constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;  ///< of a picture's file
/// The limit for AVIF and for formats that ffmpeg reads, whose decoders claim and fill memory
/// before they look for pixels. A blank picture of 4096 x 4096, coded as AV1, comes to 24,000.
inline constexpr std::int64_t kMaxPixelsPerByte = std::int64_t{1} << 16;

/// The picture at `path`, "-" being standard input; its first frame or page if it has several
/// (Image::frames). The format follows from the file's content, never from its name. Any readable
/// path will do, /dev/stdin and FIFOs included, which are read to their end.
/// Throws InvalidArgument, in one line that names the file, if it cannot be opened, is a directory,
/// is empty, is cut off or damaged anywhere, is larger than the limits above, has samples that an
/// Image cannot have (CMYK), or needs a library that this build lacks or ffmpeg and
/// that is not installed.
Image read_image(const std::string& path);

/// The same from a file's bytes.
Image read_image(std::span<const std::uint8_t> bytes, const std::string& name);

/// Receives the pictures of a file, one after the other; returns false to stop.
using TakePicture = std::function<bool(Image picture)>;

/// Reads all frames or pages of a file; each frame of an animation is drawn over those before it.
/// The first is that of read_image(). Takes and throws what read_image() does.
void read_pictures(
    std::span<const std::uint8_t> bytes, const std::string& name, const TakePicture& take);

/// The reader of a format on this machine: {"PNG", "libpng 1.6.39"}, {"others", "ffmpeg 5.1.9"};
/// empty if there is none. For `similis info`.
struct FormatReader {
  std::string format;
  std::string reader;
};
std::vector<FormatReader> format_readers();

}  // namespace similis::media
