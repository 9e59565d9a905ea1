// SPDX-License-Identifier: Apache-2.0
// An EXIF block is a TIFF file: byte order, 42, the offset of a directory of 12-byte entries. Only
// the first directory's tag 0x0112 is read here.
#include "src/media/picture/orientation.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace similis::media {
namespace {

constexpr std::uint32_t kOrientationTag = 0x0112, kShort = 3;
constexpr std::size_t kEntryBytes = 12;

// Numbers in the block's byte order; 0 past its end.
struct ExifBlock {
  std::span<const std::uint8_t> bytes;
  bool little_endian;

  std::uint32_t number(std::size_t offset, std::size_t size) const {
    if (offset > bytes.size() || size > bytes.size() - offset) return 0;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t at = offset + (little_endian ? size - 1 - i : i);
      value = value << 8 | bytes[at];
    }
    return value;
  }
};

bool starts_with(std::span<const std::uint8_t> bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::equal(text.begin(), text.end(), bytes.begin());
}

template <class T>
std::vector<T> upright(const std::vector<T>& stored, const Image& image, int orientation) {
  const bool transposed = orientation >= 5;
  const bool right_to_left =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool bottom_to_top =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const auto channels = static_cast<std::size_t>(image.channels);
  const auto columns = static_cast<std::size_t>(image.width);
  const auto rows = static_cast<std::size_t>(image.height);
  const std::size_t out_columns = transposed ? rows : columns;
  const std::size_t out_rows = transposed ? columns : rows;
  std::vector<T> out(stored.size());
  T* pixel = out.data();
  for (std::size_t y = 0; y < out_rows; ++y) {
    for (std::size_t x = 0; x < out_columns; ++x, pixel += channels) {
      std::size_t row = transposed ? x : y, column = transposed ? y : x;
      if (bottom_to_top) row = rows - 1 - row;
      if (right_to_left) column = columns - 1 - column;
      std::copy_n(stored.data() + (row * columns + column) * channels, channels, pixel);
    }
  }
  return out;
}

}  // namespace

int exif_orientation(std::span<const std::uint8_t> exif) {
  if (starts_with(exif, {"Exif\0\0", 6})) exif = exif.subspan(6);
  const bool little_endian = starts_with(exif, {"II*\0", 4});
  if (!little_endian && !starts_with(exif, {"MM\0*", 4})) return 1;
  const ExifBlock block{exif, little_endian};
  const std::size_t directory = block.number(4, 4);
  const std::size_t entries = block.number(directory, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + i * kEntryBytes;
    if (entry > exif.size()) break;
    if (block.number(entry, 2) != kOrientationTag || block.number(entry + 2, 2) != kShort) continue;
    const std::uint32_t value = block.number(entry + 8, 2);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

void apply_orientation(Image& image, int orientation) {
  if (orientation <= 1 || orientation > 8) return;
  if (image.has_floats()) {
    image.samples_float = upright(image.samples_float, image, orientation);
  } else if (image.bit_depth == 8) {
    image.samples8 = upright(image.samples8, image, orientation);
  } else {
    image.samples16 = upright(image.samples16, image, orientation);
  }
  if (orientation >= 5) std::swap(image.width, image.height);
}

}  // namespace similis::media
