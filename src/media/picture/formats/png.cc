// SPDX-License-Identifier: Apache-2.0
// Reads PNG with libpng, which reports errors by longjmp. So every call into it is in guarded(),
// whose callee holds nothing with a destructor; memory and exceptions of C++ stay outside.
#include <png.h>

#include <algorithm>
#include <array>
#include <bit>
#include <csetjmp>
#include <cstring>
#include <optional>

#include "src/media/picture/orientation.h"
#include "src/media/picture/reader.h"

namespace similis::media {
namespace {

// Deflate codes 258 bytes in no less than 2 bits.
constexpr std::size_t kMaxDeflateRatio = 1032;
// The limit of one decompressed ancillary chunk; the largest ICC profiles in use have about 4 MB.
constexpr png_alloc_size_t kMaxChunkBytes = png_alloc_size_t{1} << 24;
constexpr std::uint8_t kOpaque = 255;
constexpr double kFixedPoint = 100000;  // of gAMA and cHRM

class PngFile {
 public:
  explicit PngFile(const File& file) : file_(file) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    if (png_) info_ = png_create_info_struct(png_);
    if (!info_) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      refuse(file, "libpng could not start: out of memory, or built for another version");
    }
  }
  ~PngFile() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngFile(const PngFile&) = delete;
  PngFile& operator=(const PngFile&) = delete;

  Image read();

 private:
  // Runs calls of libpng. `calls` must hold nothing with a destructor.
  template <class Calls> void guarded(const Calls& calls) {
    if (!returns(calls)) refuse_damaged(file_, message_.data());
  }
  template <class Calls> bool returns(const Calls& calls) {
    if (setjmp(png_jmpbuf(png_))) return false;
    calls();
    return true;
  }
  static void on_error(png_structp png, png_const_charp words) {
    auto* self = static_cast<PngFile*>(png_get_error_ptr(png));
    std::strncpy(self->message_.data(), words, self->message_.size() - 1);
    png_longjmp(png, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}
  static void copy_bytes(png_structp png, png_bytep out, png_size_t count) {
    auto* self = static_cast<PngFile*>(png_get_io_ptr(png));
    const Bytes bytes = self->file_.bytes;
    if (count > bytes.size() - self->position_) png_error(png, "it ends too early");
    std::memcpy(out, bytes.data() + self->position_, count);
    self->position_ += count;
  }

  void require_whole_chunks() const;
  void read_header();
  void read_rows(Image& image);
  void expand_palette(Image& image);
  template <class T> void read_samples(std::vector<T>& samples);
  ColorSpace color();
  std::optional<Bytes> kept_chunk(const char* name, std::size_t size);
  int orientation();

  const File& file_;
  std::size_t position_ = 0;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::array<char, 256> message_{};
};

// libpng claims memory for some chunks before it finds that the file is shorter (1.6.39: eXIf, and
// no limit applies to it).
void PngFile::require_whole_chunks() const {
  constexpr std::size_t kSignatureBytes = 8, kNameOffset = 4, kFrameBytes = 12;
  std::size_t at = kSignatureBytes;
  for (bool at_end = false; !at_end;) {
    if (at + kFrameBytes > file_.bytes.size()) refuse_damaged(file_, "it ends too early");
    const std::uint8_t* chunk = file_.bytes.data() + at;
    const std::size_t length = png_get_uint_32(chunk);
    if (length > file_.bytes.size() - at - kFrameBytes) {
      refuse_damaged(file_, "a chunk is longer than the rest of the file");
    }
    at_end = std::memcmp(chunk + kNameOffset, "IEND", 4) == 0;
    at += kFrameBytes + length;
  }
}

void PngFile::read_header() {
  // libpng 1.6.39 knows neither cICP nor acTL; other unknown chunks may be large.
  static constexpr png_byte kept[] = "cICP\0acTL", dropped[] = "tEXt\0zTXt\0iTXt\0sPLT\0hIST";
  guarded([&] {
    png_set_read_fn(png_, this, copy_bytes);
    png_set_crc_action(png_, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_set_user_limits(
        png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // require_size has the better message
    png_set_chunk_malloc_max(png_, kMaxChunkBytes);
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_ALWAYS, kept, 2);
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, dropped, 5);
    png_read_info(png_, info_);
  });
}

template <class T> void PngFile::read_samples(std::vector<T>& samples) {
  const std::size_t row_bytes = png_get_rowbytes(png_, info_);
  const std::size_t rows = png_get_image_height(png_, info_);
  samples.resize(row_bytes / sizeof(T) * rows);
  std::vector<png_bytep> pointers(rows);
  for (std::size_t y = 0; y < rows; ++y) {
    pointers[y] = reinterpret_cast<png_bytep>(samples.data()) + y * row_bytes;
  }
  png_bytepp pointer = pointers.data();
  guarded([&] {
    png_read_image(png_, pointer);
    png_read_end(png_, info_);
  });
}

void PngFile::read_rows(Image& image) {
  const bool is_palette = png_get_color_type(png_, info_) == PNG_COLOR_TYPE_PALETTE;
  guarded([&] {
    // libpng silently expands an index that is not in the palette.
    is_palette ? png_set_packing(png_) : png_set_expand(png_);
    if (std::endian::native == std::endian::little) png_set_swap(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
  });
  image.bit_depth = png_get_bit_depth(png_, info_) == 16 ? 16 : 8;
  image.channels = png_get_channels(png_, info_);
  image.bit_depth == 16 ? read_samples(image.samples16) : read_samples(image.samples8);
  if (is_palette) expand_palette(image);
}

void PngFile::expand_palette(Image& image) {
  png_colorp colors = nullptr;
  png_bytep alphas = nullptr;
  int color_count = 0, alpha_count = 0;
  png_get_PLTE(png_, info_, &colors, &color_count);
  png_get_tRNS(png_, info_, &alphas, &alpha_count, nullptr);
  const std::vector<std::uint8_t> indices = std::move(image.samples8);
  image.channels = alpha_count > 0 ? 4 : 3;
  image.source_bit_depth = 8;
  image.samples8.clear();
  image.samples8.reserve(indices.size() * static_cast<std::size_t>(image.channels));
  for (const std::uint8_t index : indices) {
    if (index >= color_count)
      refuse_damaged(file_, "a pixel uses a colour that is not in the palette");
    const png_color& color = colors[index];
    image.samples8.insert(image.samples8.end(), {color.red, color.green, color.blue});
    if (image.channels == 4) {
      image.samples8.push_back(index < alpha_count ? alphas[index] : kOpaque);
    }
  }
}

std::optional<Bytes> PngFile::kept_chunk(const char* name, std::size_t size) {
  png_unknown_chunkp chunks = nullptr;
  const int count = png_get_unknown_chunks(png_, info_, &chunks);
  for (const png_unknown_chunk& chunk : std::span(chunks, static_cast<std::size_t>(count))) {
    if (std::memcmp(chunk.name, name, 4) == 0 && chunk.size == size) {
      return Bytes(chunk.data, chunk.size);
    }
  }
  return std::nullopt;
}

// In the order of precedence of the PNG specification, third edition, 4.3.
ColorSpace PngFile::color() {
  if (const auto cicp = kept_chunk("cICP", 4)) {
    const Bytes code_points = *cicp;
    if (code_points[2] != 0 || code_points[3] != 1) {
      refuse(file_, "its cICP chunk says {} range and matrix {}; it must be full-range RGB",
          code_points[3] ? "full" : "narrow", code_points[2]);
    }
    return {.cicp = Cicp{.primaries = code_points[0], .transfer = code_points[1]}};
  }
  png_charp profile_name = nullptr;
  png_bytep profile = nullptr;
  png_uint_32 length = 0;
  int compression = 0, intent = 0;
  if (png_get_iCCP(png_, info_, &profile_name, &compression, &profile, &length)) {
    return {.icc_profile = {profile, profile + length}};
  }
  if (png_get_sRGB(png_, info_, &intent)) return {};
  ColorSpace color;
  png_fixed_point gamma = 0;
  if (png_get_gAMA_fixed(png_, info_, &gamma)) color.gamma = gamma / kFixedPoint;
  std::array<png_fixed_point, 8> xy{};
  if (png_get_cHRM_fixed(
          png_, info_, &xy[0], &xy[1], &xy[2], &xy[3], &xy[4], &xy[5], &xy[6], &xy[7])) {
    const auto at = [&](std::size_t i) {
      return Chromaticity{xy[i] / kFixedPoint, xy[i + 1] / kFixedPoint};
    };
    color.chromaticities = Chromaticities{at(0), at(2), at(4), at(6)};
  }
  return color;
}

int PngFile::orientation() {
  png_bytep exif = nullptr;
  png_uint_32 length = 0;
  if (!png_get_eXIf_1(png_, info_, &length, &exif)) return 1;
  return exif_orientation({exif, length});
}

Image PngFile::read() {
  require_whole_chunks();
  read_header();
  Image image{.width = png_get_image_width(png_, info_),
      .height = png_get_image_height(png_, info_),
      .source_bit_depth = png_get_bit_depth(png_, info_),
      .format = "PNG"};
  require_size(file_, image.width, image.height);
  const std::size_t bytes_needed =
      png_get_rowbytes(png_, info_) * static_cast<std::size_t>(image.height);
  if (bytes_needed / kMaxDeflateRatio > file_.bytes.size()) {
    refuse_damaged(file_, fmt::format("{} bytes cannot hold {} x {} pixels", file_.bytes.size(),
                              image.width, image.height));
  }
  read_rows(image);
  image.color = color();
  if (const auto animation = kept_chunk("acTL", 8)) {
    image.frames = std::max<std::int64_t>(png_get_uint_32(animation->data()), 1);
  }
  apply_orientation(image, orientation());
  return image;
}

}  // namespace

Image read_png(const File& file) { return PngFile(file).read(); }

std::string png_library() { return fmt::format("libpng {}", png_get_libpng_ver(nullptr)); }

}  // namespace similis::media
