// SPDX-License-Identifier: Apache-2.0
// Any bytes as a colour space: an ICC profile, code points, or gamma and chromaticities as PNG's
// gAMA and cHRM hold them. The first byte says which, for what kind of picture, and which way.
#include <algorithm>
#include <cstring>

#include "src/media/io/reader_fuzz.h"
#include "src/media/picture/color.h"

namespace similis::media {
namespace {

// The number at this place in hundred-thousandths, as PNG has it, and 0 past the end.
double fixed_point(Bytes bytes, std::size_t place) {
  std::uint32_t value = 0;
  const std::size_t at = place * sizeof value;
  if (at + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + at, sizeof value);
  return value / 100000.0;
}

Chromaticity chromaticity(Bytes bytes, std::size_t place) {
  return {fixed_point(bytes, place), fixed_point(bytes, place + 1)};
}

ColorSpace color_space(int form, Bytes bytes) {
  switch (form) {
    case 0: return {.icc_profile = {bytes.begin(), bytes.end()}};
    case 1:
      if (bytes.size() < 2) return {};
      return {.cicp = Cicp{.primaries = bytes[0], .transfer = bytes[1]}};
    case 2: return {.gamma = fixed_point(bytes, 0)};
    default:
      return {.gamma = fixed_point(bytes, 0),
          .chromaticities = Chromaticities{chromaticity(bytes, 1), chromaticity(bytes, 3),
              chromaticity(bytes, 5), chromaticity(bytes, 7)}};
  }
}

Image ramp(int channels, int bit_depth, const ColorSpace& color) {
  Image image{.width = 16,
      .height = 4,
      .channels = channels,
      .bit_depth = bit_depth,
      .source_bit_depth = bit_depth,
      .color = color};
  const int count = 16 * 4 * channels;
  for (int i = 0; i < count; ++i) {
    if (bit_depth == 8) {
      image.samples8.push_back(static_cast<std::uint8_t>(i * 255 / (count - 1)));
    } else {
      image.samples16.push_back(static_cast<std::uint16_t>(i * 65535 / (count - 1)));
    }
  }
  return image;
}

void convert(const Image& image, const ColorSpace& target) {
  try {
    const Image converted = convert_color(image, target, "any");
    require_whole(converted, image.width * image.height);
    must(converted.has_alpha() == image.has_alpha(), "alpha stays");
    must(converted.color == target, "the picture is in the target's space");
  } catch (const InvalidArgument& error) {
    const std::string_view words = error.what();
    must(words.starts_with("cannot convert any to "), "an error names the picture");
    must(words.find('\n') == words.npos, "an error is one line");
  }
}

}  // namespace
}  // namespace similis::media

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace similis::media;
  if (size < 1) return 0;
  const int choices = bytes[0];
  const ColorSpace color = color_space(choices & 3, {bytes + 1, size - 1});
  const int channels = 1 + (choices >> 2 & 3), bit_depth = choices & 16 ? 16 : 8;
  const bool is_target = (choices & 32) != 0;
  must(!describe(color).empty(), "a colour space has a name");
  const ColorSpace from = is_target ? ColorSpace{} : color;
  const ColorSpace to = is_target ? color : ColorSpace{};
  same_color(from, to);
  convert(ramp(channels, bit_depth, from), to);
  return 0;
}
