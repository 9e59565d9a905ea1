// SPDX-License-Identifier: Apache-2.0
// A decoded picture that says what it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace similis::media {

/// Coding-independent code points (ITU-T H.273) as PNG's cICP chunk, AVIF and JXL carry them.
struct Cicp {
  std::uint8_t primaries = 2;  ///< 1 BT.709, 9 BT.2020, 12 Display P3; 2 unspecified
  std::uint8_t transfer = 2;   ///< 1 BT.709, 8 linear, 13 sRGB, 16 PQ, 18 HLG; 2 unspecified
  std::uint8_t matrix = 0;     ///< 0 for RGB
  bool full_range = true;
  friend bool operator==(const Cicp&, const Cicp&) = default;
};

/// What the code values mean. Nothing given means sRGB.
struct ColorSpace {
  std::vector<std::uint8_t> icc_profile;  ///< empty if none; wins over the others
  std::optional<Cicp> cicp;
  std::optional<double> gamma;  ///< encoding exponent of PNG's gAMA, such as 0.45455
  friend bool operator==(const ColorSpace&, const ColorSpace&) = default;
};

/// One picture: rows from the top, pixels from the left, channels interleaved, EXIF orientation
/// already applied, palettes expanded.
struct Image {
  std::int64_t width = 0;
  std::int64_t height = 0;
  int channels = 3;   ///< 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha
  int bit_depth = 8;  ///< 8 or 16: code values reach 2^bit_depth - 1. Other depths were scaled
  int source_bit_depth = 8;              ///< what the file holds: 1 to 16
  std::vector<std::uint8_t> samples8;    ///< width·height·channels code values if bit_depth is 8
  std::vector<std::uint16_t> samples16;  ///< or if it is 16
  ColorSpace color;
  std::string format;  ///< "PNG", "JPEG", …

  bool has_alpha() const { return channels == 2 || channels == 4; }
};

}  // namespace similis::media
