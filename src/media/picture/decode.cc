// SPDX-License-Identifier: Apache-2.0
// Chooses the reader of a file by its first bytes.
#include "src/media/picture/decode.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "src/media/io/byte_stream.h"
#include "src/media/io/gzip.h"
#include "src/media/picture/reader.h"

namespace similis::media {
namespace {

bool has(Bytes bytes, std::size_t offset, std::string_view signature) {
  return bytes.size() >= offset + signature.size() &&
         std::memcmp(bytes.data() + offset, signature.data(), signature.size()) == 0;
}

bool is_png(Bytes bytes) { return has(bytes, 0, "\x89PNG\r\n\x1a\n"); }

bool is_jpeg(Bytes bytes) { return has(bytes, 0, "\xff\xd8\xff"); }

bool is_webp(Bytes bytes) { return has(bytes, 0, "RIFF") && has(bytes, 8, "WEBP"); }

// A file type box (size, "ftyp", brand, version, compatible brands) that names AVIF.
bool is_avif(Bytes bytes) {
  if (!has(bytes, 4, "ftyp")) return false;
  const std::size_t box_bytes = std::size_t{bytes[0]} << 24 | std::size_t{bytes[1]} << 16 |
                                std::size_t{bytes[2]} << 8 | bytes[3];
  const std::size_t end = std::min(box_bytes, bytes.size());
  for (std::size_t brand = 8; brand + 4 <= end; brand += brand == 8 ? 8 : 4) {
    if (has(bytes, brand, "avif") || has(bytes, brand, "avis")) return true;
  }
  return false;
}

bool is_jxl(Bytes bytes) {
  return has(bytes, 0, "\xff\x0a") || has(bytes, 0, {"\0\0\0\x0cJXL \r\n\x87\n", 12});
}

bool is_tiff(Bytes bytes) {
  return has(bytes, 0, {"II*\0", 4}) || has(bytes, 0, {"MM\0*", 4}) ||
         has(bytes, 0, {"II+\0", 4}) || has(bytes, 0, {"MM\0+", 4});
}

bool is_space(Bytes bytes, std::size_t offset) {
  constexpr std::string_view kSpaces = " \t\n\v\f\r#";  // or a comment
  return bytes.size() > offset && kSpaces.find(static_cast<char>(bytes[offset])) != kSpaces.npos;
}

bool is_exr(Bytes bytes) { return has(bytes, 0, "\x76\x2f\x31\x01"); }

bool is_netpbm(Bytes bytes) {
  return has(bytes, 0, "P") && is_space(bytes, 2) && bytes[1] >= '1' && bytes[1] <= '7';
}

bool is_pfm(Bytes bytes) {
  return (has(bytes, 0, "PF") || has(bytes, 0, "Pf")) && is_space(bytes, 2);
}

// Two letters and the size of a known header, since many other files begin with the letters.
bool is_bmp(Bytes bytes) {
  static constexpr std::array kHeaderBytes = {12, 16, 40, 52, 56, 64, 108, 124};
  return has(bytes, 0, "BM") && has(bytes, 15, {"\0\0\0", 3}) &&
         std::find(kHeaderBytes.begin(), kHeaderBytes.end(), bytes[14]) != kHeaderBytes.end();
}

bool is_qoi(Bytes bytes) { return has(bytes, 0, "qoif"); }

// The sentences of `similis info` on formats whose readers need no library.
std::string no_library() { return "built in"; }

// A reader, or the library that this build lacks for one.
struct Format {
  const char* name;
  bool (*matches)(Bytes);
  const char* library;
  const char* package;  // Debian's
  Image (*read)(const File&) = nullptr;
  std::string (*version)() = nullptr;
  void (*read_all)(const File&, const TakePicture&) = nullptr;  // null if ffmpeg reads them
};

constexpr std::array kFormats = {
    Format{"PNG", is_png, "libpng", "libpng-dev", read_png, png_library},
    Format{"JPEG", is_jpeg, "libjpeg-turbo", "libjpeg-dev", read_jpeg, jpeg_library},
#if SIMILIS_WITH_WEBP
    Format{"WebP", is_webp, "libwebp", "libwebp-dev", read_webp, webp_library, read_webp_frames},
#else
    Format{"WebP", is_webp, "libwebp", "libwebp-dev"},
#endif
#if SIMILIS_WITH_AVIF
    Format{"AVIF", is_avif, "libavif", "libavif-dev", read_avif, avif_library, read_avif_frames},
#else
    Format{"AVIF", is_avif, "libavif", "libavif-dev"},
#endif
#if SIMILIS_WITH_JXL
    Format{"JXL", is_jxl, "libjxl", "libjxl-dev", read_jxl, jxl_library, read_jxl_frames},
#else
    Format{"JXL", is_jxl, "libjxl", "libjxl-dev"},
#endif
#if SIMILIS_WITH_TIFF
    Format{"TIFF", is_tiff, "libtiff", "libtiff-dev", read_tiff, tiff_library, read_tiff_pages},
#else
    Format{"TIFF", is_tiff, "libtiff", "libtiff-dev"},
#endif
#if SIMILIS_WITH_EXR
    Format{"EXR", is_exr, "OpenEXR", "libopenexr-dev", read_exr, exr_library},
#else
    Format{"EXR", is_exr, "OpenEXR", "libopenexr-dev"},
#endif
    Format{"Netpbm", is_netpbm, "", "", read_netpbm, no_library, read_netpbm_pictures},
    Format{"PFM", is_pfm, "", "", read_pfm, no_library},
    Format{"BMP", is_bmp, "", "", read_bmp, no_library},
    Format{"QOI", is_qoi, "", "", read_qoi, no_library},
};

const Format* find_format(Bytes bytes) {
  const auto found = std::find_if(kFormats.begin(), kFormats.end(),
      [&](const Format& format) { return format.matches(bytes); });
  return found == kFormats.end() ? nullptr : &*found;
}

// A format with a library of its own never goes to ffmpeg, whose pixels would differ, and which
// drops AVIF's alpha, rotation and profile and WebP's orientation silently (5.1).
Image read_file(const File& file) {
  if (file.bytes.empty()) refuse(file, "it is empty");
  const Format* format = find_format(file.bytes);
  if (!format) return read_by_ffmpeg(file);
  if (!format->read) {
    refuse(file,
        "it is {0}, but this similis was built without {1}; install {1} (on Debian: apt install "
        "{2}) and build again",
        format->name, format->library, format->package);
  }
  return format->read(file);
}

}  // namespace

std::string_view known_format(Bytes bytes) {
  const Format* format = find_format(bytes);
  return format ? format->name : std::string_view();
}

Image read_image(const std::string& path) {
  ByteStream stream(path);
  return read_image(stream.read_to_end(kMaxFileBytes), stream.name());
}

Image read_image(std::span<const std::uint8_t> bytes, const std::string& name) {
  const File file{bytes, name};
  try {
    return read_file(file);
  } catch (const std::bad_alloc&) {
    refuse(file, "there is not enough memory for its pixels");
  }
}

void read_pictures(
    std::span<const std::uint8_t> bytes, const std::string& name, const TakePicture& take) {
  const File file{bytes, name};
  try {
    const Format* format = find_format(file.bytes);
    if (format && format->read_all) return format->read_all(file, take);
    Image first = read_file(file);
    if (first.frames > 1) return read_frames_by_ffmpeg(file, first, take);
    take(std::move(first));
  } catch (const std::bad_alloc&) {
    refuse(file, "there is not enough memory for its pixels");
  }
}

std::vector<FormatReader> format_readers() {
  std::vector<FormatReader> readers;
  for (const Format& format : kFormats) {
    readers.push_back({format.name, format.version ? format.version() : std::string()});
  }
  readers.push_back({"NIfTI", gzip_library()});
  readers.push_back({"others", ffmpeg_program()});
  return readers;
}

}  // namespace similis::media
