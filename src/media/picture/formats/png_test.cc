// SPDX-License-Identifier: Apache-2.0
#include "src/media/io/test_cost.h"
#include "src/media/picture/color.h"
#include "src/media/picture/formats/png_writer.h"
#include "src/media/picture/formats/test_png.h"

namespace similis::media {
namespace {

using testing::HasSubstr;

constexpr std::uint8_t kGrey = 0, kRgb = 2, kPalette = 3;

// Two rows of two grey pixels, 8 bit, with these chunks before them.
Buffer with_chunks(const std::vector<Buffer>& chunks) {
  return png_file({2, 2, 8, kGrey}, chunks, {0, 1, 2, 0, 3, 4});
}

class PngRoundTrip : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(PngRoundTrip, KeepsEverySample) {
  const auto [channels, bit_depth] = GetParam();
  const Image image = noise(37, 19, channels, bit_depth);
  const Image read = read_image(encode_png(image), "a.png");
  expect_pixels(read, image);
  EXPECT_EQ(read.format, "PNG");
  EXPECT_EQ(read.frames, 1);
  EXPECT_EQ(read.color, ColorSpace{});
}
INSTANTIATE_TEST_SUITE_P(ChannelsAndDepths, PngRoundTrip,
    testing::Combine(testing::Range(1, 5), testing::Values(8, 16)));

TEST(Png, GreyBelow8BitsIsSpreadExactly) {
  // 0, 1, 2, 3 of 2 bits; 0, 1 of 1 bit; 0, 5, 10, 15 of 4 bits.
  const Image two = read_image(png_file({4, 1, 2, kGrey}, {}, {0, 0b00011011}), "2.png");
  EXPECT_EQ(two.samples8, (Buffer{0, 85, 170, 255}));
  EXPECT_EQ(two.source_bit_depth, 2);
  EXPECT_EQ(two.channels, 1);
  const Image one = read_image(png_file({4, 1, 1, kGrey}, {}, {0, 0b01010000}), "1.png");
  EXPECT_EQ(one.samples8, (Buffer{0, 255, 0, 255}));
  const Image four = read_image(png_file({4, 1, 4, kGrey}, {}, {0, 0x05, 0xaf}), "4.png");
  EXPECT_EQ(four.samples8, (Buffer{0, 85, 170, 255}));
}

TEST(Png, PaletteBecomesRgbAndTransparencyAlpha) {
  const Buffer palette = png_chunk("PLTE", {10, 20, 30, 40, 50, 60, 70, 80, 90});
  const Buffer rows = {0, 0b00011000};  // 0, 1, 2 of 2 bits
  const Image opaque = read_image(png_file({3, 1, 2, kPalette}, {palette}, rows), "p.png");
  EXPECT_EQ(opaque.channels, 3);
  EXPECT_EQ(opaque.source_bit_depth, 8);
  EXPECT_EQ(opaque.samples8, (Buffer{10, 20, 30, 40, 50, 60, 70, 80, 90}));
  const Buffer alpha = png_chunk("tRNS", {128, 0});
  const Image clear = read_image(png_file({3, 1, 2, kPalette}, {palette, alpha}, rows), "p.png");
  EXPECT_EQ(clear.channels, 4);
  EXPECT_EQ(clear.samples8, (Buffer{10, 20, 30, 128, 40, 50, 60, 0, 70, 80, 90, 255}));
}

TEST(Png, PixelOutsideThePaletteIsRefused) {
  const Buffer palette = png_chunk("PLTE", {10, 20, 30, 40, 50, 60, 70, 80, 90});
  EXPECT_EQ(refusal(png_file({4, 1, 2, kPalette}, {palette}, {0, 0b00011011}), "p.png"),
      "cannot read p.png: it is cut off or damaged (a pixel uses a colour that is not in the "
      "palette)");
}

TEST(Png, TransparentColourBecomesAlpha) {
  const Buffer key = png_chunk("tRNS", {0, 7});
  const Image image = read_image(png_file({2, 1, 8, kGrey}, {key}, {0, 7, 8}), "k.png");
  EXPECT_EQ(image.channels, 2);
  EXPECT_EQ(image.samples8, (Buffer{7, 0, 8, 255}));
}

// Adam7's seven passes over 5 x 3 pixels, numbered as they lie.
TEST(Png, InterlacedRowsFallIntoPlace) {
  const Buffer passes = {0, 0, 0, 4, 0, 2, 0, 10, 12, 14, 0, 1, 3, 0, 11, 13, 0, 5, 6, 7, 8, 9};
  // pass 1: (0,0); 2: (4,0); 3: none (row 4); 4: (2,0); 5: row 2, x 0 2 4; 6: rows 0 and 2, x 1 3;
  // 7: row 1.
  const Image image = read_image(png_file({5, 3, 8, kGrey, 1}, {}, passes), "i.png");
  Buffer expected(15);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<std::uint8_t>(i);
  EXPECT_EQ(image.samples8, expected);
}

TEST(Png, SaysItsColourSpace) {
  const auto color = [](const std::vector<Buffer>& chunks) {
    return read_image(with_chunks(chunks), "c.png").color;
  };
  const Buffer gamma = png_chunk("gAMA", {0, 0, 0xc3, 0x50});  // 50000
  const Buffer srgb = png_chunk("sRGB", {0});
  const Buffer cicp = png_chunk("cICP", {12, 13, 0, 1});
  EXPECT_EQ(color({}), ColorSpace{});
  EXPECT_EQ(color({gamma}), (ColorSpace{.gamma = 0.5}));
  EXPECT_EQ(color({srgb}), ColorSpace{});
  EXPECT_EQ(color({cicp}), (ColorSpace{.cicp = Cicp{12, 13}}));
  EXPECT_EQ(color({cicp, gamma}), (ColorSpace{.cicp = Cicp{12, 13}})) << "cICP goes first";
}

TEST(Png, NarrowRangeIsRefused) {
  EXPECT_EQ(refusal(with_chunks({png_chunk("cICP", {9, 16, 0, 0})}), "n.png"),
      "cannot read n.png: its cICP chunk says narrow range and matrix 0; it must be full-range "
      "RGB");
}

TEST(Png, ColourSpaceSurvivesTheWriter) {
  Image image = noise(3, 2, 3, 8);
  for (const ColorSpace& color : {ColorSpace{.cicp = Cicp{9, 16}}, ColorSpace{.gamma = 0.5},
           ColorSpace{.gamma = 0.5,
           .chromaticities =
                   Chromaticities{{0.3127, 0.329}, {0.68, 0.32}, {0.265, 0.69}, {0.15, 0.06}}}}) {
    image.color = color;
    EXPECT_EQ(read_image(encode_png(image), "c.png").color, color) << describe(color);
  }
}

TEST(Png, OrientationIsApplied) {
  const Image image = read_image(with_chunks({png_chunk("eXIf", exif_block(6))}), "o.png");
  EXPECT_EQ(image.samples8, (Buffer{3, 1, 4, 2}));
}

TEST(Png, SaysHowManyFramesItHas) {
  const auto frames = [](std::uint8_t count) {
    return read_image(with_chunks({png_chunk("acTL", {0, 0, 0, count, 0, 0, 0, 0})}), "a.png")
        .frames;
  };
  EXPECT_EQ(frames(7), 7);
  EXPECT_EQ(frames(0), 1) << "viewers show the picture";
}

TEST(Png, EveryCutIsRefused) {
  expect_every_cut_refused(encode_png(noise(23, 17, 4, 8)));
  expect_every_cut_refused(encode_png(noise(23, 17, 3, 16)), 13);
}

TEST(Png, EveryFlippedByteIsRefusedOrHarmless) {
  const Image image = noise(9, 7, 3, 8);
  const Buffer whole = encode_png(image);
  for (std::size_t i = 8; i < whole.size(); ++i) {
    Buffer damaged = whole;
    damaged[i] ^= 0x10;
    if (!refusal(damaged).empty()) continue;
    expect_pixels(read_image(damaged, "d.png"), image);
  }
}

TEST(Png, PromisesThatTheFileCannotKeepAreRefused) {
  EXPECT_EQ(refused_at_once(png_file({60000, 60000, 8, kRgb}, {}, {0, 0, 0, 0}), "big.png"),
      "cannot read big.png: it is 60000 x 60000 pixels; it must have at most 268435456 pixels and "
      "sides of at most 1048576");
  const Buffer fits = png_file({16384, 16384, 16, kRgb}, {}, {0, 0, 0, 0});
  EXPECT_EQ(refused_at_once(fits, "fits.png"),
      fmt::format("cannot read fits.png: it is cut off or damaged ({} bytes cannot hold "
                  "16384 x 16384 pixels)",
          fits.size()));
  EXPECT_THAT(refused_at_once(png_file({0x7fffffff, 1, 8, kGrey}, {}, {0, 0}), "wide.png"),
      HasSubstr("pixels"));
}

TEST(Png, ChunkLongerThanTheFileIsRefused) {
  Buffer exif = png_chunk("eXIf", exif_block(6));
  exif[0] = 0x40;  // a length of 1 GiB and a little
  EXPECT_EQ(refused_at_once(with_chunks({exif}), "long.png"),
      "cannot read long.png: it is cut off or damaged (a chunk is longer than the rest of the "
      "file)");
}

TEST(Png, ProfileThatGrowsWithoutEndIsDroppedAsViewersDo) {
  const Buffer zeros(std::size_t{1} << 26);
  uLongf size = compressBound(zeros.size());
  Buffer packed(size);
  compress2(packed.data(), &size, zeros.data(), zeros.size(), 9);
  Buffer profile = {'g', 0, 0};
  profile.insert(profile.end(), packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(size));
  const Buffer bomb = with_chunks({png_chunk("iCCP", profile)});
  EXPECT_EQ(refused_at_once(bomb, "bomb.png"), "");
  EXPECT_EQ(read_image(bomb, "bomb.png").color, ColorSpace{});
}

}  // namespace
}  // namespace similis::media
