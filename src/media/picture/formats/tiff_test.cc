// SPDX-License-Identifier: Apache-2.0
#include <tiffio.h>

#include <cmath>
#include <functional>

#include "src/media/io/test_cost.h"

namespace similis::media {
namespace {

using testing::HasSubstr;

struct TiffSettings {
  std::uint16_t compression = COMPRESSION_NONE;
  std::uint16_t planar = PLANARCONFIG_CONTIG;
  std::uint32_t tile = 0;  // side; 0: strips of 5 rows
  const char* mode = "w";  // "wb" big-endian, "w8" BigTIFF
  std::function<void(TIFF*)> change = [](TIFF*) {};
};

// Rows of codes of `bits`, packed as TIFF has them.
Buffer packed(const std::vector<std::uint16_t>& codes, std::size_t bits) {
  if (bits == 16) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(codes.data());
    return {bytes, bytes + codes.size() * 2};
  }
  Buffer out((codes.size() * bits + 7) / 8);
  for (std::size_t i = 0; i < codes.size() * bits; ++i) {
    const int bit = codes[i / bits] >> (bits - 1 - i % bits) & 1;
    out[i / 8] = static_cast<std::uint8_t>(out[i / 8] | bit << (7 - i % 8));
  }
  return out;
}

// The codes that the image was spread from.
std::vector<std::uint16_t> codes_of(const Image& image) {
  std::vector<std::uint16_t> codes(image.samples16);
  codes.insert(codes.end(), image.samples8.begin(), image.samples8.end());
  for (std::uint16_t& code : codes)
    code = rescale_code(code, image.bit_depth, image.source_bit_depth);
  return codes;
}

void write_tags(TIFF* tiff, const Image& image, const TiffSettings& settings) {
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, static_cast<std::uint32_t>(image.width));
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, static_cast<std::uint32_t>(image.height));
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, image.source_bit_depth);
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, image.channels);
  TIFFSetField(
      tiff, TIFFTAG_PHOTOMETRIC, image.channels <= 2 ? PHOTOMETRIC_MINISBLACK : PHOTOMETRIC_RGB);
  TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, settings.planar);
  TIFFSetField(tiff, TIFFTAG_COMPRESSION, settings.compression);
  if (image.has_alpha()) {
    const std::uint16_t kind = EXTRASAMPLE_UNASSALPHA;
    TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, 1, &kind);
  }
  if (settings.tile) {
    TIFFSetField(tiff, TIFFTAG_TILEWIDTH, settings.tile);
    TIFFSetField(tiff, TIFFTAG_TILELENGTH, settings.tile);
  } else {
    TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, 5);
  }
  settings.change(tiff);
}

// The codes of columns [x, x + width) and rows [y, y + height) of one plane, or of all samples; 0
// outside the image. Each row starts a byte.
Buffer cut_out(const Image& image, std::int64_t x, std::int64_t y, std::int64_t width,
    std::int64_t height, int plane) {
  const std::vector<std::uint16_t> codes = codes_of(image);
  Buffer out;
  for (std::int64_t row = y; row < y + height; ++row) {
    std::vector<std::uint16_t> line;
    for (std::int64_t column = x; column < x + width; ++column) {
      for (int c = 0; c < image.channels; ++c) {
        if (plane >= 0 && c != plane) continue;
        const bool is_inside = column < image.width && row < image.height;
        const std::int64_t at = (row * image.width + column) * image.channels + c;
        line.push_back(is_inside ? codes[static_cast<std::size_t>(at)] : 0);
      }
    }
    const Buffer bytes = packed(line, static_cast<std::size_t>(image.source_bit_depth));
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  return out;
}

void write_page(TIFF* tiff, const Image& image, const TiffSettings& settings) {
  write_tags(tiff, image, settings);
  const bool is_separate = settings.planar == PLANARCONFIG_SEPARATE;
  for (int plane = is_separate ? 0 : -1; plane < (is_separate ? image.channels : 0); ++plane) {
    const auto sample = static_cast<std::uint16_t>(std::max(plane, 0));
    const std::int64_t step = settings.tile ? settings.tile : 5;
    for (std::int64_t y = 0; y < image.height; y += step) {
      const auto row = static_cast<std::uint32_t>(y);
      if (!settings.tile) {
        Buffer data =
            cut_out(image, 0, y, image.width, std::min<std::int64_t>(5, image.height - y), plane);
        EXPECT_GE(TIFFWriteEncodedStrip(tiff, TIFFComputeStrip(tiff, row, sample), data.data(),
                      static_cast<tmsize_t>(data.size())),
            0);
        continue;
      }
      for (std::int64_t x = 0; x < image.width; x += step) {
        Buffer data = cut_out(image, x, y, step, step, plane);
        EXPECT_GE(TIFFWriteEncodedTile(tiff,
                      TIFFComputeTile(tiff, static_cast<std::uint32_t>(x), row, 0, sample),
                      data.data(), static_cast<tmsize_t>(data.size())),
            0);
      }
    }
  }
  EXPECT_TRUE(TIFFWriteDirectory(tiff));
}

Buffer encode_tiff(const std::vector<Image>& pages, const TiffSettings& settings = {}) {
  const TestFolder folder;
  const std::string path = folder.file("a.tif");
  TIFF* tiff = TIFFOpen(path.c_str(), settings.mode);
  for (const Image& page : pages) write_page(tiff, page, settings);
  TIFFClose(tiff);
  return content(path);
}

class TiffRoundTrip : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(TiffRoundTrip, EveryLayoutKeepsEveryCode) {
  const auto [channels, depth] = GetParam();
  const Image image = noise(37, 23, channels, depth <= 8 ? 8 : 16, depth);
  const TiffSettings kLayouts[] = {{}, {.mode = "wb"}, {.mode = "w8"},
      {.compression = COMPRESSION_LZW}, {.planar = PLANARCONFIG_SEPARATE}, {.tile = 16},
      {.compression = COMPRESSION_ADOBE_DEFLATE, .planar = PLANARCONFIG_SEPARATE, .tile = 16}};
  for (const TiffSettings& layout : kLayouts) {
    SCOPED_TRACE(fmt::format("compression {}, planar {}, tile {}, mode {}", layout.compression,
        layout.planar, layout.tile, layout.mode));
    const Image read = read_image(encode_tiff({image}, layout), "a.tif");
    expect_pixels(read, image);
    EXPECT_EQ(read.format, "TIFF");
    EXPECT_EQ(read.frames, 1);
    EXPECT_EQ(read.color, ColorSpace{});
  }
}
INSTANTIATE_TEST_SUITE_P(ChannelsAndDepths, TiffRoundTrip,
    testing::Combine(testing::Range(1, 5), testing::Values(1, 2, 4, 8, 12, 16)));

TEST(Tiff, PaletteIsExpandedAtItsOwnDepth) {
  const Image indices = noise(9, 7, 1, 8, 4);
  std::vector<std::uint16_t> red(16), green(16), blue(16);
  const auto read_with = [&](const std::function<int(int)>& color) {
    for (std::size_t i = 0; i < 16; ++i) {
      red[i] = static_cast<std::uint16_t>(color(static_cast<int>(i)));
      green[i] = static_cast<std::uint16_t>(color(15 - static_cast<int>(i)));
      blue[i] = static_cast<std::uint16_t>(color(3));
    }
    return read_image(encode_tiff({indices}, {.change =
                                                     [&](TIFF* tiff) {
                                                       TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC,
                                                           PHOTOMETRIC_PALETTE);
                                                       TIFFSetField(tiff, TIFFTAG_COLORMAP,
                                                           red.data(), green.data(), blue.data());
                                                     }}),
        "p.tif");
  };
  const std::size_t first = indices.samples8[0] / 17u;
  for (const int spread : {257, 256, 1}) {  // the three ways to write 8-bit colours
    const Image read = read_with([&](int i) { return i * 16 * spread; });
    ASSERT_EQ(read.channels, 3);
    ASSERT_EQ(read.bit_depth, 8) << spread;
    EXPECT_EQ(read.samples8[0], first * 16) << spread;
    EXPECT_EQ(read.samples8[1], (15 - first) * 16) << spread;
    EXPECT_EQ(read.samples8[2], 48) << spread;
  }
  const Image wide = read_with([](int i) { return i * 4001; });
  ASSERT_EQ(wide.bit_depth, 16);
  EXPECT_EQ(wide.samples16[0], first * 4001);
}

TEST(Tiff, WhiteIsZeroIsTurnedRound) {
  const Image image = noise(9, 7, 1, 8, 4);
  const Image read =
      read_image(encode_tiff({image}, {.change =
                                              [](TIFF* tiff) {
                                                TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC,
                                                    PHOTOMETRIC_MINISWHITE);
                                              }}),
          "w.tif");
  for (std::size_t i = 0; i < image.samples8.size(); ++i) {
    ASSERT_EQ(read.samples8[i], 255 - image.samples8[i]);
  }
}

TEST(Tiff, PremultipliedColoursAreDivided) {
  const Image image = {.width = 3,
      .height = 1,
      .channels = 4,
      .samples8 = {100, 50, 0, 200, 7, 7, 7, 0, 255, 1, 0, 255}};
  const Image read =
      read_image(encode_tiff({image}, {.change =
                                              [](TIFF* tiff) {
                                                const std::uint16_t kind = EXTRASAMPLE_ASSOCALPHA;
                                                TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, 1, &kind);
                                              }}),
          "a.tif");
  EXPECT_EQ(read.samples8, (Buffer{128, 64, 0, 200, 0, 0, 0, 0, 255, 1, 0, 255}));
}

TEST(Tiff, JpegInsideComesBackClosely) {
  const Image image = gradient(64, 48, 3);
  const Image read = read_image(
      encode_tiff({image}, {.compression = COMPRESSION_JPEG,
                               .tile = 16,
                               .change =
                                   [](TIFF* tiff) {
                                     TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_YCBCR);
                                     TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
                                     TIFFSetField(tiff, TIFFTAG_JPEGQUALITY, 95);
                                   }}),
      "j.tif");
  EXPECT_EQ(read.channels, 3);
  EXPECT_LE(largest_difference(read, image), 8);
}

TEST(Tiff, OrientationAndProfileAreRead) {
  const Image image = noise(3, 2, 1, 8);
  Buffer profile(130, 9);
  const Image read = read_image(
      encode_tiff({image}, {.change =
                                   [&](TIFF* tiff) {
                                     TIFFSetField(tiff, TIFFTAG_ORIENTATION, ORIENTATION_RIGHTTOP);
                                     TIFFSetField(tiff, TIFFTAG_ICCPROFILE,
                                         static_cast<std::uint32_t>(profile.size()),
                                         profile.data());
                                   }}),
      "o.tif");
  const Buffer& s = image.samples8;
  EXPECT_EQ(read.width, 2);
  EXPECT_EQ(read.samples8, (Buffer{s[3], s[0], s[4], s[1], s[5], s[2]}));
  EXPECT_EQ(read.color.icc_profile, profile);
}

TEST(Tiff, GivesItsPagesButNotItsThumbnails) {
  const Image first = noise(9, 7, 3, 8), thumbnail = noise(4, 4, 3, 8), second = noise(5, 3, 1, 16);
  int page = 0;
  const Buffer bytes =
      encode_tiff({thumbnail, first, thumbnail, second}, {.change = [&](TIFF* tiff) {
        if (page++ % 2 == 0) TIFFSetField(tiff, TIFFTAG_SUBFILETYPE, FILETYPE_REDUCEDIMAGE);
      }});
  const std::vector<Image> pages = all_pictures(bytes);
  ASSERT_EQ(pages.size(), 2u);
  expect_pixels(pages[0], first);
  expect_pixels(pages[1], second);
  EXPECT_EQ(pages[1].frames, 2);
  expect_pixels(read_image(bytes, "t.tif"), first);
}

TEST(Tiff, WhatAnImageCannotHoldIsRefused) {
  const auto refusal_with = [](int channels, const std::function<void(TIFF*)>& change) {
    return refusal(encode_tiff({noise(4, 4, channels, 16)}, {.change = change}), "x.tif");
  };
  EXPECT_EQ(refusal_with(
                1, [](TIFF* tiff) { TIFFSetField(tiff, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_INT); }),
      "cannot read x.tif: it has 16-bit signed samples; they must be unsigned integers of at most "
      "16 bits, or floats of 16, 32 or 64 bits");
  EXPECT_EQ(refusal_with(4,
                [](TIFF* tiff) { TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_SEPARATED); }),
      "cannot read x.tif: PhotometricInterpretation 5 (CMYK) is not supported; convert the picture "
      "to grey or RGB first");
  EXPECT_EQ(refusal_with(4,
                [](TIFF* tiff) {
                  const std::uint16_t kind = EXTRASAMPLE_UNSPECIFIED;
                  TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, 1, &kind);
                }),
      "cannot read x.tif: it has 4 channels; only 3, or 4 with alpha, are supported");
}

TEST(Tiff, EveryCutIsRefused) {
  for (const std::uint16_t compression : {COMPRESSION_NONE, COMPRESSION_LZW,
           COMPRESSION_ADOBE_DEFLATE, COMPRESSION_PACKBITS, COMPRESSION_JPEG}) {
    SCOPED_TRACE(compression);
    expect_every_cut_refused(
        encode_tiff({noise(32, 32, 3, 8)}, {.compression = compression, .tile = 16}), 29);
  }
}

// One strip that must hold side x side pixels and holds 4 x 4.
Buffer overpromised(std::uint16_t compression, std::uint32_t side) {
  return encode_tiff(
      {noise(4, 4, 3, 8)}, {.compression = compression, .change = [side](TIFF* tiff) {
                              TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, side);
                              TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, side);
                              TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, side);
                            }});
}

TEST(Tiff, PromisesThatTheFileCannotKeepAreRefused) {
  EXPECT_EQ(refused_at_once(overpromised(COMPRESSION_NONE, 60000), "big.tif"),
      "cannot read big.tif: it is 60000 x 60000 pixels; it must have at most 268435456 pixels and "
      "sides of at most 1048576");
  for (const std::uint16_t compression : {COMPRESSION_NONE, COMPRESSION_LZW, COMPRESSION_PACKBITS,
           COMPRESSION_ADOBE_DEFLATE, COMPRESSION_LZMA, COMPRESSION_ZSTD}) {
    SCOPED_TRACE(compression);
    if (!TIFFIsCODECConfigured(compression)) continue;
    EXPECT_THAT(refused_at_once(overpromised(compression, 16000), "fits.tif"),
        HasSubstr("cannot read fits.tif: it is cut off or damaged"));
  }
}

// A page of floats in strips of 5 rows or tiles of 16; the samples are 1/8 of their place less 3.
Buffer float_tiff(int channels, std::uint16_t bits, const TiffSettings& settings) {
  const TestFolder folder;
  const std::string path = folder.file("a.tif");
  TIFF* tiff = TIFFOpen(path.c_str(), settings.mode);
  Image image{.width = 19, .height = 13, .channels = channels, .source_bit_depth = bits};
  write_tags(tiff, image, settings);
  TIFFSetField(tiff, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_IEEEFP);
  TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, 13);
  Buffer rows;
  for (int i = 0; i < 19 * 13 * channels; ++i) {
    const double value = i % 48 / 8.0 - 3;
    const auto single = static_cast<float>(value);
    // Halves by hand: 1024 and 25 as in IEEE 754, of numbers that have few digits.
    std::uint16_t half = value < 0 ? 0x8000 : 0;
    int exponent = 0;
    const double mantissa = std::frexp(std::abs(value), &exponent);
    if (value != 0)
      half |= static_cast<std::uint16_t>(
          ((exponent + 14) << 10) | static_cast<int>(mantissa * 2048 - 1024));
    const void* const from = bits == 16   ? static_cast<const void*>(&half)
                             : bits == 32 ? static_cast<const void*>(&single)
                                          : static_cast<const void*>(&value);
    const auto* const bytes = static_cast<const std::uint8_t*>(from);
    rows.insert(rows.end(), bytes, bytes + bits / 8);
  }
  EXPECT_GE(TIFFWriteEncodedStrip(tiff, 0, rows.data(), static_cast<tmsize_t>(rows.size())), 0);
  TIFFClose(tiff);
  return content(path);
}

TEST(Tiff, FloatsAreAsStored) {
  for (const int channels : {1, 3}) {
    for (const std::uint16_t bits : {16, 32, 64}) {
      // libtiff 4.5 writes this predictor wrongly to big-endian files.
      const TiffSettings kPredicted{
          .compression = COMPRESSION_ADOBE_DEFLATE, .mode = "wl", .change = [](TIFF* tiff) {
            TIFFSetField(tiff, TIFFTAG_PREDICTOR, PREDICTOR_FLOATINGPOINT);
          }};
      for (const TiffSettings& settings :
          {TiffSettings{.mode = "wl"}, TiffSettings{.mode = "wb"}, kPredicted}) {
        SCOPED_TRACE(fmt::format("{} channels of {} bits, mode {}, compression {}", channels, bits,
            settings.mode, settings.compression));
        const Image image = read_image(float_tiff(channels, bits, settings), "a.tif");
        EXPECT_EQ(image.channels, channels);
        EXPECT_EQ(image.format, "TIFF");
        ASSERT_TRUE(image.has_floats());
        ASSERT_EQ(image.samples_float.size(), static_cast<std::size_t>(19 * 13 * channels));
        for (std::size_t i = 0; i < image.samples_float.size(); ++i) {
          ASSERT_EQ(image.samples_float[i], static_cast<float>(i % 48) / 8 - 3) << i;
        }
      }
    }
  }
}

TEST(Tiff, FloatsOfOtherKindsAreRefused) {
  const auto refusal = [](const TiffSettings& settings) {
    return media::refusal(float_tiff(1, 32, settings), "a.tif");
  };
  EXPECT_THAT(refusal({.change =
                           [](TIFF* tiff) {
                             TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISWHITE);
                           }}),
      HasSubstr("PhotometricInterpretation 0 is not supported"));
}

}  // namespace
}  // namespace similis::media
