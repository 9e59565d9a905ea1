// SPDX-License-Identifier: Apache-2.0
// A decoded picture with its colour space and its origin.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace similis::media {

/// Coding-independent code points (ITU-T H.273) as PNG's cICP chunk, AVIF and JXL carry them. The
/// samples of an Image are RGB or grey at full range, so its matrix has been undone.
struct Cicp {
  std::uint8_t primaries = 2;  ///< 1 BT.709, 9 BT.2020, 12 Display P3; 2 unspecified
  std::uint8_t transfer = 2;   ///< 1 BT.709, 8 linear, 13 sRGB, 16 PQ, 18 HLG; 2 unspecified
  friend bool operator==(const Cicp&, const Cicp&) = default;
};

/// CIE 1931 x, y.
struct Chromaticity {
  double x = 0, y = 0;
  friend bool operator==(const Chromaticity&, const Chromaticity&) = default;
};

/// PNG's cHRM: where the primaries and the white lie.
struct Chromaticities {
  Chromaticity white, red, green, blue;
  friend bool operator==(const Chromaticities&, const Chromaticities&) = default;
};

/// The meaning of code values, in at most one of three forms: an ICC profile, code points, or gamma
/// and chromaticities; of several in a file the reader keeps the one that its format prefers.
/// Nothing given means sRGB. color.h compares and converts.
struct ColorSpace {
  std::vector<std::uint8_t> icc_profile;  ///< empty if none
  std::optional<Cicp> cicp;
  std::optional<double> gamma;  ///< encoding exponent of PNG's gAMA, such as 0.45455
  std::optional<Chromaticities> chromaticities;  ///< sRGB's if not given
  friend bool operator==(const ColorSpace&, const ColorSpace&) = default;
};

/// The bit_depth of pictures whose samples are floats.
inline constexpr int kFloatBits = 32;

/// One picture: rows from the top, pixels from the left, channels interleaved; orientation already
/// applied, palettes expanded, alpha straight (colours not multiplied by it).
struct Image {
  std::int64_t width = 0;
  std::int64_t height = 0;
  int channels = 3;          ///< 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha
  int bit_depth = 8;         ///< 8 or 16: code values reach 2^bit_depth - 1; or kFloatBits
  int source_bit_depth = 8;  ///< n, what the file holds: 1 to 16. Its code values v became
                             ///< v·(2^bit_depth - 1)/(2^n - 1), rounded to nearest: exact for n of
                             ///< 1, 2, 4, 8 and 16. kFloatBits for floats, which are as stored
  std::vector<std::uint8_t> samples8;    ///< width·height·channels code values if bit_depth is 8
  std::vector<std::uint16_t> samples16;  ///< or if it is 16
  std::vector<float> samples_float;      ///< or if they are floats: any values, 1 channel or 3
  ColorSpace color;
  std::string format;       ///< "PNG", "JPEG", "WebP", "AVIF", "JXL", "TIFF", "EXR", "PBM", "PGM",
                            ///< "PPM", "PAM", "PFM", "BMP", "QOI", or ffmpeg's word
  std::int64_t frames = 1;  ///< frames or pages in the file; the samples are those of the first

  bool has_alpha() const { return channels == 2 || channels == 4; }
  bool has_floats() const { return bit_depth == kFloatBits; }
};

}  // namespace similis::media
