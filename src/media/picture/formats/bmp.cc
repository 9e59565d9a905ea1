// SPDX-License-Identifier: Apache-2.0
// Reads BMP by Microsoft's definition (BITMAPCOREHEADER, BITMAPINFOHEADER and its versions 2 to 5)
// and OS/2's: palettes of 1, 2, 4 or 8 bits, 16, 24 and 32 bits, bit fields of up to 16 bits, runs
// (RLE4, RLE8). Alpha is what a mask says it is: the fourth byte of plain 32-bit pixels has no
// meaning. An embedded ICC profile is kept; calibrated colours are read as sRGB, as viewers do.
#include <algorithm>
#include <array>
#include <bit>

#include "src/media/picture/reader.h"

namespace similis::media {
namespace {

constexpr std::size_t kFileHeader = 14, kCore = 12, kInfo = 40, kOs2 = 64, kV5 = 124;
constexpr std::size_t kMasksInHeader = 52;  // headers of this size or more, but OS/2's, hold masks

enum Compression : std::uint32_t {
  plain = 0,
  rle8 = 1,
  rle4 = 2,
  bit_fields = 3,
  alpha_fields = 6
};

std::uint32_t little(Bytes bytes, std::size_t at, std::size_t count) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < count; ++i) value |= std::uint32_t{bytes[at + i]} << 8 * i;
  return value;
}

// The place of a channel in a pixel.
struct Field {
  std::uint32_t mask = 0;
  int shift = 0, bits = 0;
  std::uint32_t of(std::uint32_t pixel) const { return (pixel & mask) >> shift; }
};

struct Header {
  std::size_t size = 0, pixels_at = 0;
  std::int64_t width = 0, height = 0;
  bool is_top_down = false;
  std::uint32_t bits = 0, compression = plain, colors = 0;
  std::vector<Field> fields;  // red, green, blue, alpha, of pixels of 16 or 32 bits

  bool has_palette() const { return bits <= 8; }
  bool has_runs() const { return compression == rle4 || compression == rle8; }
  std::size_t row_bytes() const { return (static_cast<std::size_t>(width) * bits + 31) / 32 * 4; }
};

Field field_of(const File& file, std::uint32_t mask, std::uint32_t bits) {
  const Field field{mask, std::countr_zero(mask), std::popcount(mask)};
  const bool is_within = bits == 32 || mask >> bits == 0;
  const bool is_whole = mask != 0 && mask >> field.shift == (std::uint64_t{1} << field.bits) - 1;
  if (!is_within || !is_whole || field.bits > 16) {
    refuse(
        file, "its mask {:#x} is not supported; a mask must be up to 16 bits side by side", mask);
  }
  return field;
}

void read_fields(const File& file, Header& header) {
  std::array<std::uint32_t, 4> masks = {};
  if (header.compression == plain) {
    masks = header.bits == 16 ? std::array<std::uint32_t, 4>{0x7c00, 0x3e0, 0x1f}
                              : std::array<std::uint32_t, 4>{0xff0000, 0xff00, 0xff};
  } else {
    // Masks are members of long headers and follow short ones.
    const bool has_alpha = header.compression == alpha_fields || header.size > kMasksInHeader;
    const std::size_t count = has_alpha ? 4 : 3, first = kFileHeader + kInfo;
    if (file.bytes.size() < first + 4 * count) refuse_damaged(file, "its masks are missing");
    for (std::size_t i = 0; i < count; ++i) masks[i] = little(file.bytes, first + 4 * i, 4);
  }
  for (const std::uint32_t mask : masks) {
    if (mask == 0 && header.fields.size() == 3) continue;  // no alpha
    header.fields.push_back(field_of(file, mask, header.bits));
  }
}

void require_known(const File& file, const Header& header) {
  static constexpr std::array kDepths = {1u, 2u, 4u, 8u, 16u, 24u, 32u};
  const std::uint32_t bits = header.bits, compression = header.compression;
  const bool has_depth = std::find(kDepths.begin(), kDepths.end(), bits) != kDepths.end();
  const bool has_masks = compression == bit_fields || compression == alpha_fields;
  const bool is_os2 = header.size == kOs2;  // 3 is Huffman's code and 4 another RLE there
  const bool fits = compression == plain || (compression == rle8 && bits == 8) ||
                    (compression == rle4 && bits == 4) ||
                    (has_masks && !is_os2 && (bits == 16 || bits == 32));
  if (!has_depth || !fits) {
    refuse(file, "it has {} bits per pixel in compression {}, which is not supported", bits,
        compression);
  }
  if (header.has_runs() && header.is_top_down) {
    refuse_damaged(file, "it has runs, but its first row is the top one");
  }
}

Header read_header(const File& file) {
  const Bytes bytes = file.bytes;
  Header header{.size = little(bytes, kFileHeader, 4), .pixels_at = little(bytes, 10, 4)};
  if (bytes.size() < kFileHeader + header.size) refuse_damaged(file, "its header is cut off");
  const auto field = [&](std::size_t at, std::size_t count) {
    return little(bytes, kFileHeader + at, count);
  };
  if (header.size == kCore) {
    header.width = field(4, 2);
    header.height = field(6, 2);
    header.bits = field(10, 2);
  } else {
    header.width = static_cast<std::int32_t>(field(4, 4));
    header.height = static_cast<std::int32_t>(field(8, 4));
    header.is_top_down = header.height < 0;
    header.height = std::abs(header.height);
    header.bits = field(14, 2);
    if (header.size >= kInfo) {
      header.compression = field(16, 4);
      header.colors = field(32, 4);
    }
  }
  require_size(file, header.width, header.height);
  require_known(file, header);
  if (header.bits == 16 || header.bits == 32) read_fields(file, header);
  if (header.has_runs()) {
    require_density(file, header.width, header.height);
  } else if (header.pixels_at > bytes.size() ||
             header.row_bytes() >
                 (bytes.size() - header.pixels_at) / static_cast<std::size_t>(header.height)) {
    refuse_damaged(file, fmt::format("{} bytes cannot hold {} x {} pixels of {} bits", bytes.size(),
                             header.width, header.height, header.bits));
  }
  return header;
}

using Color = std::array<std::uint8_t, 3>;

// The colours between the header and the pixels.
std::vector<Color> read_palette(const File& file, const Header& header) {
  const std::size_t entry = header.size == kCore ? 3 : 4;
  const std::size_t most = std::size_t{1} << header.bits;
  const std::size_t count = header.colors == 0 ? most : header.colors;
  const std::size_t first = kFileHeader + header.size;
  if (count > most || file.bytes.size() < first + count * entry) {
    refuse_damaged(file, "its palette is not all there");
  }
  std::vector<Color> palette;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t* color = file.bytes.data() + first + i * entry;
    palette.push_back({color[2], color[1], color[0]});
  }
  return palette;
}

// The indices of a picture of runs, rows from the bottom; those that no run reaches are 0.
class Runs {
 public:
  Runs(const File& file, const Header& header)
      : file_(file),
        header_(header),
        at_(header.pixels_at),
        indices_(static_cast<std::size_t>(header.width * header.height)) {}

  std::vector<std::uint8_t> read() {
    for (;;) {
      const std::uint8_t count = take(), code = take();
      if (count > 0) {
        for (int i = 0; i < count; ++i) put(index_of(code, i));
      } else if (code == 0) {
        x_ = 0;
        ++y_;
      } else if (code == 1) {
        return std::move(indices_);
      } else if (code == 2) {
        x_ += take();
        y_ += take();
      } else {
        put_separate(code);
      }
    }
  }

 private:
  bool is_rle4() const { return header_.compression == rle4; }
  std::uint8_t take() {
    if (at_ >= file_.bytes.size()) refuse_damaged(file_, "it ends too early");
    return file_.bytes[at_++];
  }
  // A byte of RLE4 has two indices, which alternate.
  std::uint8_t index_of(std::uint8_t code, int i) const {
    if (!is_rle4()) return code;
    return static_cast<std::uint8_t>(i % 2 == 0 ? code >> 4 : code & 15);
  }
  void put_separate(int count) {
    const std::size_t first = at_;
    std::uint8_t code = 0;
    for (int i = 0; i < count; ++i) {
      if (!is_rle4() || i % 2 == 0) code = take();
      put(index_of(code, i));
    }
    if ((at_ - first) % 2 != 0) take();  // to a word
  }
  void put(std::uint8_t index) {
    if (x_ >= header_.width || y_ >= header_.height) {
      refuse_damaged(file_, "a run leaves the picture");
    }
    indices_[static_cast<std::size_t>(y_ * header_.width + x_++)] = index;
  }

  const File& file_;
  const Header& header_;
  std::size_t at_;
  std::int64_t x_ = 0, y_ = 0;
  std::vector<std::uint8_t> indices_;
};

// The samples of each row, from the top.
class RowReader {
 public:
  RowReader(const File& file, const Header& header, Image& image)
      : file_(file), header_(header), image_(image) {
    if (header.has_palette()) palette_ = read_palette(file, header);
    if (header.has_runs()) indices_ = Runs(file, header).read();
  }

  void read() {
    const auto count = static_cast<std::size_t>(image_.width * image_.height * image_.channels);
    image_.bit_depth == 8 ? image_.samples8.reserve(count) : image_.samples16.reserve(count);
    for (std::int64_t y = 0; y < header_.height; ++y) {
      const auto stored =
          static_cast<std::size_t>(header_.is_top_down ? y : header_.height - 1 - y);
      const auto width = static_cast<std::size_t>(header_.width);
      if (header_.has_runs()) {
        for (std::size_t x = 0; x < width; ++x) put_color(indices_[stored * width + x]);
        continue;
      }
      const std::size_t row = header_.pixels_at + stored * header_.row_bytes();
      for (std::size_t x = 0; x < width; ++x) put_pixel(row, x);
    }
  }

 private:
  void put_pixel(std::size_t row, std::size_t x) {
    const Bytes bytes = file_.bytes;
    if (header_.has_palette()) {
      const std::size_t bit = x * header_.bits;
      const unsigned shift = 8 - header_.bits - bit % 8;
      put_color(bytes[row + bit / 8] >> shift & ((1u << header_.bits) - 1));
    } else if (header_.bits == 24) {
      const std::uint8_t* color = bytes.data() + row + 3 * x;
      image_.samples8.insert(image_.samples8.end(), {color[2], color[1], color[0]});
    } else {
      const std::size_t size = header_.bits / 8;
      const std::uint32_t pixel = little(bytes, row + size * x, size);
      for (const Field& field : header_.fields) {
        const std::uint16_t code = rescale_code(field.of(pixel), field.bits, image_.bit_depth);
        if (image_.bit_depth == 8) {
          image_.samples8.push_back(static_cast<std::uint8_t>(code));
        } else {
          image_.samples16.push_back(code);
        }
      }
    }
  }
  void put_color(std::size_t index) {
    if (index >= palette_.size()) {
      refuse_damaged(file_, "a pixel uses a colour that is not in the palette");
    }
    image_.samples8.insert(image_.samples8.end(), palette_[index].begin(), palette_[index].end());
  }

  const File& file_;
  const Header& header_;
  Image& image_;
  std::vector<Color> palette_;
  std::vector<std::uint8_t> indices_;
};

// The profile that a header of version 5 may embed.
std::vector<std::uint8_t> read_profile(const File& file, const Header& header) {
  constexpr std::uint32_t kEmbedded = 0x4d424544;  // "MBED"
  if (header.size < kV5 || little(file.bytes, kFileHeader + 56, 4) != kEmbedded) return {};
  const std::size_t first = kFileHeader + little(file.bytes, kFileHeader + 112, 4);
  const std::size_t size = little(file.bytes, kFileHeader + 116, 4);
  if (first > file.bytes.size() || size > file.bytes.size() - first) {
    refuse_damaged(file, "its ICC profile is cut off");
  }
  const Bytes profile = file.bytes.subspan(first, size);
  return {profile.begin(), profile.end()};
}

}  // namespace

Image read_bmp(const File& file) {
  const Header header = read_header(file);
  Image image{.width = header.width,
      .height = header.height,
      .channels = header.fields.size() == 4 ? 4 : 3,
      .color = {.icc_profile = read_profile(file, header)},
      .format = "BMP"};
  if (!header.fields.empty()) {
    image.source_bit_depth = 0;
    for (const Field& field : header.fields) {
      image.source_bit_depth = std::max(image.source_bit_depth, field.bits);
    }
  }
  if (image.source_bit_depth > 8) image.bit_depth = 16;
  RowReader(file, header, image).read();
  return image;
}

}  // namespace similis::media
