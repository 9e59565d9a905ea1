// SPDX-License-Identifier: Apache-2.0
// Reads pictures: PNG and JPEG, and WebP, AVIF, JXL and TIFF where this build has their libraries;
// everything else through the programs ffprobe and ffmpeg.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "src/media/picture/image.h"

namespace similis::media {

/// Limits that a header is held against before memory is claimed for what it promises.
inline constexpr std::int64_t kMaxPixels = std::int64_t{1} << 28;   ///< of one picture
inline constexpr std::int64_t kMaxSide = std::int64_t{1} << 20;     ///< width or height
inline constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;  ///< of a picture's file
/// Of AVIF and of what ffmpeg reads, whose decoders claim and fill the memory before they look for
/// pixels. A blank picture of 4096 x 4096, coded as AV1, comes to 24,000.
inline constexpr std::int64_t kMaxPixelsPerByte = std::int64_t{1} << 16;

/// The picture at `path`, "-" being standard input; its first frame or page if it has several
/// (Image::frames says). What the file is follows from its content, never from its name. Any
/// readable path will do, /dev/stdin and FIFOs included, which are read to their end.
/// Throws InvalidArgument, in one line that names the file, if it cannot be opened, is a directory,
/// is empty, is cut off or damaged anywhere, is larger than the limits above, holds what an Image
/// cannot (CMYK, floating point), or needs a library that this build lacks or ffmpeg and that is
/// not installed.
Image read_image(const std::string& path);

/// The same from a file's bytes.
Image read_image(std::span<const std::uint8_t> bytes, const std::string& name);

/// Is given the pictures of a file, one after the other; false for no more.
using TakePicture = std::function<bool(Image picture)>;

/// All frames or pages of a file, animations as they are to be seen: each frame drawn over those
/// before it. The first is read_image()'s. Takes and throws what that does.
void read_pictures(
    std::span<const std::uint8_t> bytes, const std::string& name, const TakePicture& take);

/// What reads a format on this machine: {"PNG", "libpng 1.6.39"}, {"others", "ffmpeg 5.1.9"}; the
/// reader is empty where nothing does. For `similis info`.
struct FormatReader {
  std::string format;
  std::string reader;
};
std::vector<FormatReader> format_readers();

}  // namespace similis::media
