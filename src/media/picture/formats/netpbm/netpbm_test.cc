// SPDX-License-Identifier: Apache-2.0
// The files are spelled out by Netpbm's manual pages.
#include <gmock/gmock.h>

#include "src/media/io/test_cost.h"

namespace similis::media {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Buffer file_of(std::string_view header, const Buffer& samples = {}) {
  Buffer bytes(header.begin(), header.end());
  bytes.insert(bytes.end(), samples.begin(), samples.end());
  return bytes;
}

Buffer big_endian(const std::vector<std::uint16_t>& samples) {
  Buffer bytes;
  for (const std::uint16_t sample : samples) {
    bytes.push_back(static_cast<std::uint8_t>(sample >> 8));
    bytes.push_back(static_cast<std::uint8_t>(sample));
  }
  return bytes;
}

TEST(Netpbm, EightBitsKeepEverySample) {
  for (const int channels : {1, 3}) {
    const Image image = noise(13, 9, channels, 8);
    const Image read = read_image(
        file_of(channels == 1 ? "P5\n13 9\n255\n" : "P6\n13 9\n255\n", image.samples8), "a");
    expect_pixels(read, image);
    EXPECT_EQ(read.format, channels == 1 ? "PGM" : "PPM");
    EXPECT_EQ(read.frames, 1);
    EXPECT_EQ(read.color, ColorSpace{});
  }
}

TEST(Netpbm, SixteenBitsKeepEverySample) {
  for (const int channels : {1, 3}) {
    const Image image = noise(13, 9, channels, 16);
    expect_pixels(read_image(file_of(channels == 1 ? "P5 13 9 65535\n" : "P6 13 9 65535\n",
                                 big_endian(image.samples16)),
                      "a"),
        image);
  }
}

TEST(Netpbm, OtherLargestValuesAreScaledToNearest) {
  const Image ten_bits = noise(6, 5, 1, 16, 10);
  std::vector<std::uint16_t> codes;
  for (const std::uint16_t sample : ten_bits.samples16)
    codes.push_back(rescale_code(sample, 16, 10));
  expect_pixels(read_image(file_of("P5 6 5 1023\n", big_endian(codes)), "a"), ten_bits);

  const Image of_100 = read_image(file_of("P5 4 1 100\n", {0, 1, 50, 100}), "a");
  EXPECT_EQ(of_100.source_bit_depth, 7);
  EXPECT_THAT(of_100.samples8, ElementsAre(0, 3, 128, 255));  // 2.55, 127.5
  const Image of_1000 = read_image(file_of("P5 2 1 1000\n", big_endian({1, 999})), "a");
  EXPECT_THAT(of_1000.samples16, ElementsAre(66, 65469));  // 65.535, 65469.465
}

TEST(Netpbm, BitsAreBlackWhereTheyAreSet) {
  // Rows of ten: 1010101010 and 0000000011, each padded to two bytes.
  const Image read = read_image(file_of("P4\n10 2\n", {0xaa, 0x80, 0x00, 0xff}), "a");
  EXPECT_EQ(read.format, "PBM");
  EXPECT_EQ(read.source_bit_depth, 1);
  EXPECT_THAT(read.samples8, ElementsAre(0, 255, 0, 255, 0, 255, 0, 255, 0, 255,  //
                                 255, 255, 255, 255, 255, 255, 255, 255, 0, 0));
}

TEST(Netpbm, PlainFormsAreRead) {
  const Image bits = read_image(file_of("P1\n# a comment\n3 2\n10 1\n0 1#more\n0\n"), "a");
  EXPECT_THAT(bits.samples8, ElementsAre(0, 255, 0, 255, 0, 255));
  const Image grey = read_image(file_of("P2 2 2 # width height\n15\n0 1\n  14\t15"), "a");
  EXPECT_EQ(grey.source_bit_depth, 4);
  EXPECT_THAT(grey.samples8, ElementsAre(0, 17, 238, 255));
  const Image color = read_image(file_of("P3\n1 2\n65535\n1 2 3\n65533 65534 65535\n"), "a");
  EXPECT_EQ(color.format, "PPM");
  EXPECT_THAT(color.samples16, ElementsAre(1, 2, 3, 65533, 65534, 65535));
}

TEST(Netpbm, PamHasItsOwnHeader) {
  const Image alpha = noise(3, 2, 4, 8);
  const Image read = read_image(file_of("P7\n# any order\nHEIGHT 2\nWIDTH 3\nMAXVAL 255\nDEPTH 4\n"
                                        "TUPLTYPE RGB_ALPHA\nENDHDR\n",
                                    alpha.samples8),
      "a");
  expect_pixels(read, alpha);
  EXPECT_EQ(read.format, "PAM");
  const Image grey = noise(3, 2, 2, 16);
  expect_pixels(read_image(file_of("P7\nWIDTH 3\nHEIGHT 2\nDEPTH 2\nMAXVAL 65535\n"
                                   "TUPLTYPE GRAYSCALE_ALPHA\nENDHDR\n",
                               big_endian(grey.samples16)),
                    "a"),
      grey);
  const Image white = read_image(
      file_of("P7\nWIDTH 2\nHEIGHT 1\nDEPTH 1\nMAXVAL 1\nTUPLTYPE BLACKANDWHITE\nENDHDR\n", {0, 1}),
      "a");
  EXPECT_THAT(white.samples8, ElementsAre(0, 255)) << "unlike PBM";
  EXPECT_EQ(
      read_image(file_of("P7\nWIDTH 1\nHEIGHT 1\nDEPTH 3\nMAXVAL 255\nENDHDR\n", {1, 2, 3}), "a")
          .channels,
      3);
}

TEST(Netpbm, SeveralPicturesAreFrames) {
  const Buffer bytes = file_of("P5 1 1 255\n\7P5 1 1 255\n\10P5 1 1 255\n\11\n");
  const std::vector<Image> pictures = all_pictures(bytes);
  ASSERT_EQ(pictures.size(), 3u);
  EXPECT_EQ(read_image(bytes, "a").frames, 3);
  EXPECT_THAT(pictures[0].samples8, ElementsAre(7));
  EXPECT_THAT(pictures[2].samples8, ElementsAre(9));
}

TEST(Netpbm, WhatIsDamagedIsSaid) {
  const auto says = [](std::string_view header, const Buffer& samples = {}) {
    return refusal(file_of(header, samples), "a");
  };
  EXPECT_EQ(says("P5 2 1 7\n", {7, 8}),
      "cannot read a: it is cut off or damaged (a sample is 8 but the largest value is 7)");
  EXPECT_EQ(says("P2 1 1 255\n300"),
      "cannot read a: it is cut off or damaged (a sample is 300 but the largest value is 255)");
  EXPECT_EQ(says("P5 2x 1 7\n", {7, 8}),
      "cannot read a: it is cut off or damaged (its width is \"2x\", not a number)");
  EXPECT_EQ(says("P5 2 1 70000\n", {7, 8}),
      "cannot read a: it is cut off or damaged (its largest value is 70000; it must be from 1 to "
      "65535)");
  EXPECT_EQ(says("P5 2 1 255\n", {7, 8, 'x'}),
      "cannot read a: it is cut off or damaged (1 bytes after its pixels are no picture)");
  EXPECT_EQ(
      says("P1 2 1\n0 1 1"), "cannot read a: it is cut off or damaged (it has too many samples)");
  EXPECT_THAT(says("P7\nWIDTH 1\nHEIGHT 1\nMAXVAL 255\nENDHDR\n", {1}), HasSubstr("lacks"));
  EXPECT_EQ(
      says("P7\nWIDTH 1\nHEIGHT 1\nDEPTH 4\nMAXVAL 255\nTUPLTYPE CMYK\nENDHDR\n", {1, 2, 3, 4}),
      "cannot read a: its DEPTH is 4 and its TUPLTYPE \"CMYK\"; only grey and RGB, each with or "
      "without alpha, are supported");
  EXPECT_THAT(says("P7\nWIDTH 1\nHEIGHT 1\nDEPTH 1\nMAXVAL 255\nTUPLTYPE RGB\nENDHDR\n", {1}),
      HasSubstr("its TUPLTYPE is RGB but its DEPTH 1"));
}

TEST(Netpbm, EveryCutIsRefused) {
  expect_every_cut_refused(file_of("P6\n7 5\n255\n", noise(7, 5, 3, 8).samples8));
  expect_every_cut_refused(file_of("P4\n16 3\n", {1, 2, 3, 4, 5, 6}));
  expect_every_cut_refused(
      file_of("P7\nWIDTH 3\nHEIGHT 2\nDEPTH 4\nMAXVAL 255\nENDHDR\n", noise(3, 2, 4, 8).samples8));
}

TEST(Netpbm, PromisesThatTheFileCannotKeepAreRefused) {
  EXPECT_EQ(refused_at_once(file_of("P6\n60000 60000\n255\n", Buffer(300)), "big.ppm"),
      "cannot read big.ppm: it is 60000 x 60000 pixels; it must have at most 268435456 pixels and "
      "sides of at most 1048576");
  EXPECT_EQ(refused_at_once(file_of("P6\n16000 16000\n255\n", Buffer(300)), "fits.ppm"),
      "cannot read fits.ppm: it is cut off or damaged (300 bytes of samples cannot hold 16000 x "
      "16000 pixels)");
  EXPECT_EQ(refused_at_once(file_of("P1\n16000 16000\n1 0 1"), "bits.pbm"),
      "cannot read bits.pbm: it is cut off or damaged (5 bytes of samples cannot hold 16000 x "
      "16000 pixels)");
}

}  // namespace
}  // namespace similis::media
