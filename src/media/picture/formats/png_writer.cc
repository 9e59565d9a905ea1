// SPDX-License-Identifier: Apache-2.0
// Encodes with libpng's defaults into memory. As in png.cc, functions that libpng may leave by
// longjmp hold nothing with a destructor.
#include "src/media/picture/formats/png_writer.h"

#include <png.h>

#include <array>
#include <bit>
#include <cmath>
#include <csetjmp>
#include <cstring>

#include "src/core/require.h"
#include "src/media/io/whole_file.h"

namespace similis::media {
namespace {

constexpr double kFixedPoint = 100000;  // of gAMA and cHRM

class PngEncoder {
 public:
  explicit PngEncoder(const Image& image) : image_(image) {
    png_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    if (png_) info_ = png_create_info_struct(png_);
    if (!info_) {
      png_destroy_write_struct(&png_, nullptr);
      throw Error("encode_png: libpng could not start: out of memory, or another version");
    }
  }
  ~PngEncoder() { png_destroy_write_struct(&png_, &info_); }
  PngEncoder(const PngEncoder&) = delete;
  PngEncoder& operator=(const PngEncoder&) = delete;

  std::vector<std::uint8_t> encode();

 private:
  static void on_error(png_structp png, png_const_charp words) {
    auto* self = static_cast<PngEncoder*>(png_get_error_ptr(png));
    std::strncpy(self->message_.data(), words, self->message_.size() - 1);
    png_longjmp(png, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}
  static void append(png_structp png, png_bytep bytes, png_size_t count) {
    auto* self = static_cast<PngEncoder*>(png_get_io_ptr(png));
    bool has_room = true;
    try {
      self->out_.insert(self->out_.end(), bytes, bytes + count);
    } catch (const std::bad_alloc&) {
      has_room = false;  // libpng is C: nothing may be thrown through it
    }
    if (!has_room) png_error(png, "out of memory");
  }

  void write_header();
  void write_color();
  void write_rows(const std::uint8_t* row, std::size_t row_bytes);
  bool write(const std::uint8_t* rows, std::size_t row_bytes);

  const Image& image_;
  std::vector<std::uint8_t> out_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::array<char, 256> message_{};
};

void PngEncoder::write_header() {
  static constexpr std::array<int, 5> kTypes = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
      PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
  png_set_write_fn(png_, this, append, nullptr);
  png_set_IHDR(png_, info_, static_cast<png_uint_32>(image_.width),
      static_cast<png_uint_32>(image_.height), image_.bit_depth,
      kTypes[static_cast<std::size_t>(image_.channels)], PNG_INTERLACE_NONE,
      PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
}

void PngEncoder::write_color() {
  const ColorSpace& color = image_.color;
  const auto fixed = [](double value) {
    return static_cast<png_fixed_point>(std::lround(value * kFixedPoint));
  };
  if (!color.icc_profile.empty()) {
    png_set_iCCP(png_, info_, "ICC", PNG_COMPRESSION_TYPE_BASE, color.icc_profile.data(),
        static_cast<png_uint_32>(color.icc_profile.size()));
  }
  if (color.cicp) {
    std::array<png_byte, 4> code_points = {color.cicp->primaries, color.cicp->transfer, 0, 1};
    png_unknown_chunk chunk{.name = {'c', 'I', 'C', 'P', 0},
        .data = code_points.data(),
        .size = code_points.size(),
        .location = PNG_HAVE_IHDR};
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_ALWAYS, chunk.name, 1);
    png_set_unknown_chunks(png_, info_, &chunk, 1);
  }
  if (color.gamma) png_set_gAMA_fixed(png_, info_, fixed(*color.gamma));
  if (const auto& at = color.chromaticities) {
    png_set_cHRM_fixed(png_, info_, fixed(at->white.x), fixed(at->white.y), fixed(at->red.x),
        fixed(at->red.y), fixed(at->green.x), fixed(at->green.y), fixed(at->blue.x),
        fixed(at->blue.y));
  }
}

void PngEncoder::write_rows(const std::uint8_t* row, std::size_t row_bytes) {
  png_write_info(png_, info_);
  if (image_.bit_depth == 16 && std::endian::native == std::endian::little) png_set_swap(png_);
  for (std::int64_t y = 0; y < image_.height; ++y, row += row_bytes) png_write_row(png_, row);
  png_write_end(png_, info_);
}

bool PngEncoder::write(const std::uint8_t* rows, std::size_t row_bytes) {
  if (setjmp(png_jmpbuf(png_))) return false;
  write_header();
  write_color();
  write_rows(rows, row_bytes);
  return true;
}

std::vector<std::uint8_t> PngEncoder::encode() {
  const bool is_wide = image_.bit_depth == 16;
  const void* samples = is_wide ? static_cast<const void*>(image_.samples16.data())
                                : static_cast<const void*>(image_.samples8.data());
  const auto row_bytes =
      static_cast<std::size_t>(image_.width * image_.channels) * (is_wide ? 2u : 1u);
  if (!write(static_cast<const std::uint8_t*>(samples), row_bytes)) {
    throw InvalidArgument(
        fmt::format("encode_png: image was refused by libpng ({})", message_.data()));
  }
  return std::move(out_);
}

}  // namespace

std::vector<std::uint8_t> encode_png(const Image& image) {
  require(image.bit_depth == 8 || image.bit_depth == 16,
      "encode_png: image has bit_depth {}; it must be 8 or 16", image.bit_depth);
  require(image.channels >= 1 && image.channels <= 4,
      "encode_png: image has {} channels; it must have 1 to 4", image.channels);
  const std::size_t samples = image.bit_depth == 8 ? image.samples8.size() : image.samples16.size();
  require(image.width > 0 && image.height > 0 &&
              samples == static_cast<std::size_t>(image.width * image.height * image.channels),
      "encode_png: image has {} samples; it must have {} x {} x {}", samples, image.width,
      image.height, image.channels);
  return PngEncoder(image).encode();
}

void write_png(const std::string& path, const Image& image) {
  write_whole_file(path, encode_png(image));
}

}  // namespace similis::media
