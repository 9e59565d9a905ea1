// SPDX-License-Identifier: Apache-2.0
// The files are spelled out by the format's definition.
#include "src/media/io/test_cost.h"

namespace similis::media {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

void put(Buffer& bytes, std::uint32_t value, int count) {
  for (int i = 0; i < count; ++i) bytes.push_back(static_cast<std::uint8_t>(value >> 8 * i));
}

struct Bmp {
  std::int32_t width, height;
  std::uint32_t bits, compression = 0, colors = 0;
  std::uint32_t header = 40;
  Buffer before_pixels = {};  // the rest of the header, masks or a palette
  Buffer pixels = {};
};

Buffer file_of(const Bmp& bmp) {
  Buffer bytes = {'B', 'M'};
  const std::size_t first = 14 + std::min<std::size_t>(bmp.header, 40) + bmp.before_pixels.size();
  put(bytes, static_cast<std::uint32_t>(first + bmp.pixels.size()), 4);
  put(bytes, 0, 4);
  put(bytes, static_cast<std::uint32_t>(first), 4);
  put(bytes, bmp.header, 4);
  const int side = bmp.header == 12 ? 2 : 4;
  put(bytes, static_cast<std::uint32_t>(bmp.width), side);
  put(bytes, static_cast<std::uint32_t>(bmp.height), side);
  put(bytes, 1, 2);
  put(bytes, bmp.bits, 2);
  if (bmp.header >= 40) {
    put(bytes, bmp.compression, 4);
    put(bytes, static_cast<std::uint32_t>(bmp.pixels.size()), 4);
    put(bytes, 0, 4);  // pixels per metre across
    put(bytes, 0, 4);  // and down
    put(bytes, bmp.colors, 4);
    put(bytes, 0, 4);
  }
  bytes.insert(bytes.end(), bmp.before_pixels.begin(), bmp.before_pixels.end());
  bytes.insert(bytes.end(), bmp.pixels.begin(), bmp.pixels.end());
  return bytes;
}

Image read(const Bmp& bmp) { return read_image(file_of(bmp), "a.bmp"); }
std::string says(const Bmp& bmp) { return refusal(file_of(bmp), "a.bmp"); }

// Blue, green, red and a byte without meaning.
const Buffer kPalette = {0, 0, 0, 9, 30, 20, 10, 9, 60, 50, 40, 9, 255, 255, 255, 9};

Buffer words(const std::vector<std::uint32_t>& values) {
  Buffer bytes;
  for (const std::uint32_t value : values) put(bytes, value, 4);
  return bytes;
}

TEST(Bmp, PixelsOf24BitsGoUpInPaddedRows) {
  const Bmp bmp{.width = 1, .height = 2, .bits = 24, .pixels = {3, 2, 1, 0, 6, 5, 4, 0}};
  const Image image = read(bmp);
  EXPECT_EQ(image.width, 1);
  EXPECT_EQ(image.height, 2);
  EXPECT_EQ(image.channels, 3);
  EXPECT_EQ(image.format, "BMP");
  EXPECT_THAT(image.samples8, ElementsAre(4, 5, 6, 1, 2, 3));
  Bmp down = bmp;
  down.height = -2;
  EXPECT_THAT(read(down).samples8, ElementsAre(1, 2, 3, 4, 5, 6));
  Bmp core = bmp;
  core.header = 12;
  EXPECT_THAT(read(core).samples8, ElementsAre(4, 5, 6, 1, 2, 3));
}

TEST(Bmp, PalettesAreColours) {
  const auto colors = ElementsAre(10, 20, 30, 255, 255, 255, 40, 50, 60);
  const Bmp eight{.width = 3,
      .height = 1,
      .bits = 8,
      .colors = 4,
      .before_pixels = kPalette,
      .pixels = {1, 3, 2, 0}};
  EXPECT_THAT(read(eight).samples8, colors);
  Bmp four = eight;
  four.bits = 4;
  four.pixels = {0x13, 0x20, 0, 0};
  EXPECT_THAT(read(four).samples8, colors);
  Bmp two = eight;
  two.bits = 2;
  two.pixels = {0b01111000, 0, 0, 0};
  EXPECT_THAT(read(two).samples8, colors);
  const Bmp one{.width = 3,
      .height = 1,
      .bits = 1,
      .before_pixels = {kPalette.begin(), kPalette.begin() + 8},
      .pixels = {0b01000000, 0, 0, 0}};
  EXPECT_THAT(read(one).samples8, ElementsAre(0, 0, 0, 10, 20, 30, 0, 0, 0));
}

TEST(Bmp, FourthByteHasNoMeaningWithoutItsMask) {
  const Buffer pixel = {3, 2, 1, 77};
  EXPECT_THAT(
      read({.width = 1, .height = 1, .bits = 32, .pixels = pixel}).samples8, ElementsAre(1, 2, 3));
  Buffer masks = words({0xff0000, 0xff00, 0xff, 0xff000000});
  const Image alpha = read({.width = 1,
      .height = 1,
      .bits = 32,
      .compression = 3,
      .header = 56,
      .before_pixels = masks,
      .pixels = pixel});
  EXPECT_EQ(alpha.channels, 4);
  EXPECT_THAT(alpha.samples8, ElementsAre(1, 2, 3, 77));
}

TEST(Bmp, FieldsAreScaledToNearest) {
  const Image of_555 = read({.width = 2,
      .height = 1,
      .bits = 16,
      .pixels = {0xff, 0x7f, 1 | (16 << 5 & 0xff), (16 >> 3) | (3 << 2)}});
  EXPECT_EQ(of_555.source_bit_depth, 5);
  EXPECT_THAT(of_555.samples8, ElementsAre(255, 255, 255, 25, 132, 8));  // 24.7, 131.6, 8.2
  const Image of_565 = read({.width = 2,
      .height = 1,
      .bits = 16,
      .compression = 3,
      .before_pixels = words({0xf800, 0x7e0, 0x1f}),
      .pixels = {0xff, 0xff, 0xe0, 0x07}});
  EXPECT_EQ(of_565.source_bit_depth, 6);
  EXPECT_THAT(of_565.samples8, ElementsAre(255, 255, 255, 0, 255, 0));
  const Image ten = read({.width = 1,
      .height = 1,
      .bits = 32,
      .compression = 3,
      .before_pixels = words({1023u << 20, 1023u << 10, 1023}),
      .pixels = words({1023u << 20 | 1u << 10 | 512})});
  EXPECT_EQ(ten.bit_depth, 16);
  EXPECT_EQ(ten.source_bit_depth, 10);
  EXPECT_THAT(ten.samples16, ElementsAre(65535, 64, 32800));  // 64.06, 32799.5
}

TEST(Bmp, RunsOfBytes) {
  // Two rows of four: a run of 3, one of 1, the next row; then three apart, padded, and the end.
  const Image image = read({.width = 4,
      .height = 2,
      .bits = 8,
      .compression = 1,
      .colors = 4,
      .before_pixels = kPalette,
      .pixels = {3, 1, 1, 2, 0, 0, 0, 3, 3, 2, 1, 0, 0, 1}});
  EXPECT_THAT(image.samples8, ElementsAre(255, 255, 255, 40, 50, 60, 10, 20, 30, 0, 0, 0,  //
                                  10, 20, 30, 10, 20, 30, 10, 20, 30, 40, 50, 60));
}

TEST(Bmp, RunsOfHalfBytesAndJumps) {
  // A run of 3 of 1 and 2 in turn; a jump by 1 and 1; one of 1 alone.
  const Image image = read({.width = 5,
      .height = 2,
      .bits = 4,
      .compression = 2,
      .colors = 4,
      .before_pixels = kPalette,
      .pixels = {3, 0x12, 0, 2, 1, 1, 1, 0x30, 0, 1}});
  EXPECT_THAT(image.samples8, ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255,  //
                                  10, 20, 30, 40, 50, 60, 10, 20, 30, 0, 0, 0, 0, 0, 0));
}

TEST(Bmp, ProfileIsKept) {
  Buffer rest(124 - 40 + 5);
  const Buffer tag = words({0x4d424544}), at = words({124}), size = words({5});
  std::copy(tag.begin(), tag.end(), rest.begin() + 56 - 40);
  std::copy(at.begin(), at.end(), rest.begin() + 112 - 40);
  std::copy(size.begin(), size.end(), rest.begin() + 116 - 40);
  std::fill(rest.end() - 5, rest.end(), std::uint8_t{42});
  Bmp bmp{.width = 1,
      .height = 1,
      .bits = 24,
      .header = 124,
      .before_pixels = rest,
      .pixels = {3, 2, 1, 0}};
  const Image image = read(bmp);
  EXPECT_EQ(image.color.icc_profile, Buffer(5, 42));
  EXPECT_THAT(image.samples8, ElementsAre(1, 2, 3));
  bmp.before_pixels[116 - 40] = 200;
  EXPECT_EQ(says(bmp), "cannot read a.bmp: it is cut off or damaged (its ICC profile is cut off)");
}

TEST(Bmp, WhatCannotBeReadIsSaid) {
  EXPECT_EQ(says({.width = 1, .height = 1, .bits = 24, .compression = 4, .pixels = {1, 2, 3, 4}}),
      "cannot read a.bmp: it has 24 bits per pixel in compression 4, which is not supported");
  EXPECT_EQ(says({.width = 1,
                .height = 1,
                .bits = 8,
                .colors = 4,
                .before_pixels = kPalette,
                .pixels = {4, 0, 0, 0}}),
      "cannot read a.bmp: it is cut off or damaged (a pixel uses a colour that is not in the "
      "palette)");
  EXPECT_EQ(says({.width = 1,
                .height = 1,
                .bits = 16,
                .compression = 3,
                .before_pixels = words({0xf801, 0x7e0, 0x1e}),
                .pixels = {0, 0, 0, 0}}),
      "cannot read a.bmp: its mask 0xf801 is not supported; a mask must be up to 16 bits side by "
      "side");
  EXPECT_EQ(says({.width = 1,
                .height = 1,
                .bits = 8,
                .compression = 1,
                .colors = 4,
                .before_pixels = kPalette,
                .pixels = {2, 1, 0, 1}}),
      "cannot read a.bmp: it is cut off or damaged (a run leaves the picture)");
  EXPECT_EQ(says({.width = 1,
                .height = -1,
                .bits = 8,
                .compression = 1,
                .colors = 4,
                .before_pixels = kPalette,
                .pixels = {1, 1, 0, 1}}),
      "cannot read a.bmp: it is cut off or damaged (it has runs, but its first row is the top "
      "one)");
  EXPECT_THAT(says({.width = -1, .height = 1, .bits = 24, .pixels = {1, 2, 3, 4}}),
      HasSubstr("it has no pixels (-1 x 1)"));
}

TEST(Bmp, EveryCutIsRefused) {
  const Image image = noise(4, 3, 3, 8);  // rows of 12 bytes
  expect_every_cut_refused(
      file_of({.width = 4, .height = 3, .bits = 24, .pixels = image.samples8}));
  expect_every_cut_refused(file_of({.width = 4,
      .height = 2,
      .bits = 8,
      .compression = 1,
      .colors = 4,
      .before_pixels = kPalette,
      .pixels = {3, 1, 1, 2, 0, 0, 0, 3, 3, 2, 1, 0, 0, 1}}));
}

TEST(Bmp, PromisesThatTheFileCannotKeepAreRefused) {
  EXPECT_EQ(
      refused_at_once(
          file_of({.width = 16000, .height = 16000, .bits = 24, .pixels = Buffer(100)}), "a.bmp"),
      "cannot read a.bmp: it is cut off or damaged (154 bytes cannot hold 16000 x 16000 pixels of "
      "24 bits)");
  EXPECT_EQ(refused_at_once(file_of({.width = 16000,
                                .height = 16000,
                                .bits = 8,
                                .compression = 1,
                                .colors = 4,
                                .before_pixels = kPalette,
                                .pixels = {0, 1}}),
                "a.bmp"),
      "cannot read a.bmp: it is 16000 x 16000 pixels in 72 bytes; it must have at most 65536 "
      "pixels "
      "per byte");
}

}  // namespace
}  // namespace similis::media
