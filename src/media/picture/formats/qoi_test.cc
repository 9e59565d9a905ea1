// SPDX-License-Identifier: Apache-2.0
// The files are spelled out by QOI's specification.
#include "src/media/io/test_cost.h"
#include "src/media/picture/formats/test_png.h"

namespace similis::media {
namespace {

using testing::ElementsAre;

Buffer qoi(std::uint32_t width, std::uint32_t height, std::uint8_t channels,
    const Buffer& operations, std::uint8_t color = 0) {
  Buffer bytes = {'q', 'o', 'i', 'f'};
  append_u32(bytes, width);
  append_u32(bytes, height);
  bytes.insert(bytes.end(), {channels, color});
  bytes.insert(bytes.end(), operations.begin(), operations.end());
  bytes.insert(bytes.end(), {0, 0, 0, 0, 0, 0, 0, 1});
  return bytes;
}

// Every pixel spelled out.
Buffer spelled_out(const Image& image) {
  constexpr std::uint8_t kRgb = 0xfe, kRgba = 0xff;
  Buffer operations;
  for (auto pixel = image.samples8.begin(); pixel != image.samples8.end();
       pixel += image.channels) {
    operations.push_back(image.channels == 3 ? kRgb : kRgba);
    operations.insert(operations.end(), pixel, pixel + image.channels);
  }
  return qoi(static_cast<std::uint32_t>(image.width), static_cast<std::uint32_t>(image.height),
      static_cast<std::uint8_t>(image.channels), operations);
}

TEST(Qoi, PixelsThatAreSpelledOutAreKept) {
  for (const int channels : {3, 4}) {
    const Image image = noise(13, 9, channels, 8);
    const Image read = read_image(spelled_out(image), "a.qoi");
    expect_pixels(read, image);
    EXPECT_EQ(read.format, "QOI");
    EXPECT_EQ(read.color, ColorSpace{});
  }
}

TEST(Qoi, EveryOperationDoesAsSpecified) {
  const Buffer operations = {
      0xc1,                                        // a run of 2: black at the beginning
      0xfe, 10, 20, 30,                            // RGB
      0x40 | 3 << 4 | 0 << 2 | 1,                  // differences 1, -2, -1: 11 18 29
      0x80 | (32 + 5), (8 + 2) << 4 | 7,           // green 5, red 7, blue 4: 18 23 33
      (10 * 3 + 20 * 5 + 30 * 7 + 255 * 11) % 64,  // the place of 10 20 30
      0x40 | 0 << 4 | 1 << 2 | 3,                  // differences -2, -1, 1: 8 19 31
      0x11,                                        // a place where nothing was: 0 0 0
  };
  const Image read = read_image(qoi(8, 1, 3, operations), "a");
  EXPECT_THAT(read.samples8, ElementsAre(0, 0, 0, 0, 0, 0, 10, 20, 30, 11, 18, 29, 18, 23, 33, 10,
                                 20, 30, 8, 19, 31, 0, 0, 0));
}

TEST(Qoi, DifferencesWrapAround) {
  const Image read = read_image(qoi(2, 1, 4, {0x40, 0xff, 1, 2, 3, 4}), "a");
  EXPECT_THAT(read.samples8, ElementsAre(254, 254, 254, 255, 1, 2, 3, 4));
}

TEST(Qoi, LinearColoursAreSaid) {
  const Image read = read_image(qoi(1, 1, 3, {0xc0}, 1), "a");
  EXPECT_EQ(read.color.cicp, (Cicp{.primaries = 1, .transfer = 8}));
}

TEST(Qoi, WhatIsDamagedIsSaid) {
  const auto says = [](const Buffer& bytes) { return refusal(bytes, "a"); };
  const std::string damaged = "cannot read a: it is cut off or damaged ";
  EXPECT_EQ(says(qoi(1, 1, 3, {0xc1})), damaged + "(a run is longer than the picture)");
  EXPECT_EQ(says(qoi(1, 1, 3, {0xc0, 0xc0})), damaged + "(it has more pixels than its size says)");
  EXPECT_EQ(says(qoi(1, 1, 3, {0xfe, 1, 2})), damaged + "(it ends too early)");
  EXPECT_EQ(says(qoi(1, 1, 5, {0xc0})), damaged + "(it says 5 channels and colour space 0)");
  EXPECT_EQ(says(qoi(1, 1, 3, {0xc0}, 7)), damaged + "(it says 3 channels and colour space 7)");
}

TEST(Qoi, EveryCutIsRefused) { expect_every_cut_refused(spelled_out(noise(8, 6, 4, 8))); }

TEST(Qoi, PromisesThatTheFileCannotKeepAreRefused) {
  EXPECT_EQ(refused_at_once(qoi(16000, 16000, 4, Buffer(100, 0xfd)), "a"),
      "cannot read a: it is cut off or damaged (122 bytes cannot hold 16000 x 16000 pixels)");
}

}  // namespace
}  // namespace similis::media
