// SPDX-License-Identifier: Apache-2.0
// Reads PFM, the portable float map, by P. Debevec's definition: "PF" for RGB or "Pf" for grey,
// width, height, a scale whose sign gives the byte order, then rows of 32-bit floats from the
// bottom to the top. Programs disagree on what a scale other than 1 does to samples, so only 1 is
// taken.
#include <bit>
#include <cmath>
#include <cstring>

#include "src/core/number_text.h"
#include "src/media/picture/formats/netpbm/netpbm_text.h"
#include "src/media/picture/reader.h"

namespace similis::media {
namespace {

float float_at(const std::uint8_t* bytes, bool is_little) {
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word |= std::uint32_t{bytes[i]} << 8 * (is_little ? i : 3 - i);
  return std::bit_cast<float>(word);
}

}  // namespace

Image read_pfm(const File& file) {
  constexpr std::size_t kMagicBytes = 2;
  Image image{.channels = file.bytes[1] == 'F' ? 3 : 1,
      .bit_depth = kFloatBits,
      .source_bit_depth = kFloatBits,
      .format = "PFM"};
  NetpbmText text(file, kMagicBytes);
  image.width = text.number("width");
  image.height = text.number("height");
  const std::string_view scale_text = text.word();
  const std::optional<double> scale = parse_number<double>(scale_text);
  if (!scale || !std::isfinite(*scale) || *scale == 0) {
    refuse_damaged(file, fmt::format("its scale is \"{}\", not a number", scale_text));
  }
  if (std::abs(*scale) != 1) {
    refuse(file, "its scale is {}; only 1 and -1 are supported", scale_text);
  }
  text.end_header();
  require_size(file, image.width, image.height);
  const auto per_row = static_cast<std::size_t>(image.width * image.channels);
  const auto rows = static_cast<std::size_t>(image.height);
  const std::size_t row_bytes = per_row * sizeof(float);
  if (text.left() / row_bytes < rows || text.left() != row_bytes * rows) {
    refuse_damaged(file, fmt::format("its {} bytes of samples do not fit {} x {} pixels",
                             text.left(), image.width, image.height));
  }
  const std::uint8_t* const samples = file.bytes.data() + text.position();
  image.samples_float.reserve(per_row * rows);
  for (std::size_t y = rows; y-- > 0;) {
    for (std::size_t i = 0; i < per_row; ++i) {
      image.samples_float.push_back(
          float_at(samples + y * row_bytes + i * sizeof(float), *scale < 0));
    }
  }
  return image;
}

}  // namespace similis::media
