// SPDX-License-Identifier: Apache-2.0
// Conversions of two pictures that differ in kind.
#include "src/cli/inputs/picture_pair.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/media/picture/test_pictures.h"
#include "tests/refusal.h"

namespace similis::cli {
namespace {

using media::Image;
using test::expect_refusal;

PicturePair pair(
    const Image& reference, const Image& distorted, const std::optional<Color>& background = {}) {
  return pair_pictures(reference, distorted, "ref.png", "dis.png", {.background = background}, {});
}

float value(const Tensor& planes, std::int64_t channel, std::int64_t y, std::int64_t x) {
  const std::int64_t at =
      channel * planes.strides[1] + y * planes.strides[2] + x * planes.strides[3];
  return planes.dtype == DType::u8 ? planes.elements<std::uint8_t>()[at]
                                   : planes.elements<float>()[at];
}

Image picture(int channels, const std::vector<std::uint8_t>& samples) {
  return {.width = static_cast<std::int64_t>(samples.size()) / channels,
      .height = 1,
      .channels = channels,
      .samples8 = samples};
}

TEST(PicturePair, ChannelsBecomePlanesOfCodeValues) {
  const Image image = media::noise(5, 3, 3, 8);
  const PicturePair result = pair(image, image);
  EXPECT_EQ(result.frames.reference.shape, (Extents{1, 3, 3, 5}));
  EXPECT_EQ(result.frames.data_range, 255);
  EXPECT_TRUE(result.differences.empty());
  for (std::int64_t y = 0; y < 3; ++y) {
    for (std::int64_t x = 0; x < 5; ++x) {
      for (std::int64_t c = 0; c < 3; ++c) {
        const auto at = static_cast<std::size_t>((y * 5 + x) * 3 + c);
        EXPECT_EQ(value(result.frames.reference, c, y, x), image.samples8[at]);
      }
    }
  }
}

Image floats(std::int64_t width, int channels, const std::vector<float>& samples) {
  Image image{.width = width,
      .height = static_cast<std::int64_t>(samples.size()) / (width * channels),
      .channels = channels,
      .bit_depth = media::kFloatBits,
      .source_bit_depth = media::kFloatBits};
  image.samples_float = samples;
  return image;
}

TEST(PicturePair, SamplesOf8BitsAndFloatsAreNotCopied) {
  const PicturePair bytes = pair(media::noise(5, 3, 3, 8), media::noise(5, 3, 4, 8), Color{});
  const auto& pictures = *bytes.frames.as_read.pictures;
  EXPECT_EQ(bytes.frames.reference.dtype, DType::u8);
  EXPECT_EQ(bytes.frames.reference.data(), pictures[0].image.samples8.data());
  EXPECT_NE(bytes.frames.distorted.data(), pictures[1].image.samples8.data()) << "blended";
  const PicturePair of_floats = pair(floats(2, 1, {0.5f, -2}), floats(2, 3, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(of_floats.frames.reference.dtype, DType::f32);
  EXPECT_EQ(of_floats.frames.distorted.data(),
      (*of_floats.frames.as_read.pictures)[1].image.samples_float.data());
}

TEST(PicturePair, FloatsHaveADataRangeOfOne) {
  const PicturePair result = pair(floats(2, 1, {0.5f, -2}), floats(2, 3, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(result.frames.refusal, "");
  EXPECT_EQ(result.frames.data_range, 1);
  EXPECT_EQ(result.bit_depth, 32);
  EXPECT_EQ(value(result.frames.reference, 2, 0, 1), -2) << "grey promoted to RGB";
  EXPECT_EQ(value(result.frames.distorted, 1, 0, 1), 5);
}

TEST(PicturePair, FloatsAndCodeValuesAreNotCompared) {
  EXPECT_EQ(pair(floats(1, 1, {1}), media::noise(1, 1, 1, 8)).frames.refusal,
      "ref.png has floating-point samples but dis.png has 8-bit code values; convert one of them");
  EXPECT_EQ(pair(media::noise(1, 1, 1, 16), floats(1, 1, {1})).frames.refusal,
      "ref.png has 16-bit code values but dis.png has floating-point samples; convert one of them");
}

TEST(PicturePair, FloatsMustBeFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Image fine = floats(2, 3, std::vector<float>(12, 1));
  Image odd = fine;
  odd.samples_float[10] = std::nanf("");
  EXPECT_EQ(pair(fine, odd).frames.refusal,
      "dis.png has 1 value that is not finite, the first at x 1, y 1");
  odd.samples_float[3] = -kInfinity;
  EXPECT_EQ(pair(odd, fine).frames.refusal,
      "ref.png has 2 values that are not finite, the first at x 1, y 0");
}

TEST(PicturePair, SizesMustBeEqual) {
  expect_refusal([] { pair(media::noise(800, 600, 3, 8), media::noise(640, 480, 1, 16)); },
      "ref.png is 800×600 but dis.png is 640×480; sizes must match");
}

TEST(PicturePair, GreyBecomesThreeEqualChannels) {
  const PicturePair result = pair(picture(1, {7, 9}), picture(3, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(result.channels, 3);
  for (std::int64_t c = 0; c < 3; ++c) {
    EXPECT_EQ(value(result.frames.reference, c, 0, 0), 7);
    EXPECT_EQ(value(result.frames.reference, c, 0, 1), 9);
    EXPECT_EQ(value(result.frames.distorted, c, 0, 1), static_cast<float>(4 + c));
  }
  EXPECT_EQ(result.differences, (Differences{{"channels", "reference promoted from grey to RGB"}}));
}

TEST(PicturePair, EightBitsBecomeSixteenExactly) {
  const Image deep{.width = 3,
      .height = 1,
      .channels = 1,
      .bit_depth = 16,
      .source_bit_depth = 16,
      .samples16 = {0, 257 * 200, 65535}};
  const PicturePair result = pair(deep, picture(1, {0, 200, 255}));
  EXPECT_EQ(result.bit_depth, 16);
  EXPECT_EQ(result.frames.data_range, 65535);
  for (std::int64_t x = 0; x < 3; ++x) {
    EXPECT_EQ(value(result.frames.reference, 0, 0, x), value(result.frames.distorted, 0, 0, x));
  }
  EXPECT_EQ(
      result.differences, (Differences{{"bit_depth", "distorted promoted from 8 to 16 bits"}}));
}

TEST(PicturePair, OpaqueAlphaIsDropped) {
  const PicturePair result = pair(picture(3, {1, 2, 3}), picture(4, {4, 5, 6, 255}));
  EXPECT_EQ(result.channels, 3);
  EXPECT_EQ(value(result.frames.distorted, 2, 0, 0), 6);
  EXPECT_EQ(result.differences, (Differences{{"distorted_alpha", "opaque, dropped"}}));
}

TEST(PicturePair, TransparentPixelsNeedABackground) {
  const Image opaque = picture(3, {10, 20, 30}), clear = picture(4, {10, 20, 30, 51});
  EXPECT_EQ(pair(clear, opaque).frames.refusal,
      "ref.png has transparent pixels; give the colour behind them with --background COLOR");
  const PicturePair result = pair(clear, opaque, parse_color("white"));
  EXPECT_EQ(value(result.frames.reference, 0, 0, 0), 206);  // (51·10 + 204·255)/255
  EXPECT_EQ(value(result.frames.distorted, 0, 0, 0), 10);
  EXPECT_EQ(result.differences, (Differences{{"reference_alpha", "blended over #ffffffffffff"}}));
}

TEST(PicturePair, TheDistortedPictureIsTakenToTheReferencesColours) {
  Image reference = media::noise(4, 4, 3, 8), distorted = reference;
  EXPECT_TRUE(pair(reference, distorted).differences.empty());
  distorted.color.gamma = 1.0;  // linear light, where the reference is sRGB
  const PicturePair result = pair(reference, distorted);
  ASSERT_EQ(result.differences.size(), 1u);
  EXPECT_EQ(result.differences[0].first, "color");
  EXPECT_EQ(
      result.differences[0].second, "distorted converted from gamma 1 to the reference's sRGB");
  // Linear 0.2 is sRGB's 0.4845.
  const Image dark = picture(3, {51, 51, 51});
  Image linear = dark;
  linear.color.gamma = 1.0;
  EXPECT_EQ(value(pair(dark, linear).frames.distorted, 0, 0, 0), 124);
  EXPECT_EQ(value(pair(linear, linear).frames.distorted, 0, 0, 0), 51) << "equal: as stored";
}

TEST(Background, ColoursAreNamesOrHexadecimal) {
  EXPECT_EQ(parse_color("black"), (Color{0, 0, 0}));
  EXPECT_EQ(parse_color("grey"), parse_color("#808080"));
  EXPECT_EQ(parse_color("#f0a"), (Color{0xffff, 0, 0xaaaa}));
  EXPECT_EQ(parse_color("102030"), (Color{0x1010, 0x2020, 0x3030}));
  EXPECT_EQ(parse_color("#123456789ABC"), (Color{0x1234, 0x5678, 0x9abc}));
  for (const char* text : {"", "#", "#ff", "#fffff", "#ggg", "#-1-1-1", "0x0x0x", "#fff ", "red"}) {
    expect_refusal([&] { parse_color(text); },
        std::string("--background is \"") + text +
            "\"; it must be black, white, gray, rgb, rrggbb or rrrrggggbbbb in hexadecimal");
  }
}

TEST(Background, BlendsExactlyAndRoundsToNearest) {
  const Color background = parse_color("#2080ff");
  for (int alpha = 0; alpha < 256; ++alpha) {
    for (const int code : {0, 1, 77, 254, 255}) {
      const auto a = static_cast<std::uint8_t>(alpha), c = static_cast<std::uint8_t>(code);
      const Image blended = blend(picture(4, {c, c, c, a}), background);
      const int behind[] = {0x20, 0x80, 0xff};
      for (std::size_t i = 0; i < 3; ++i) {
        const double exact = (alpha * code + (255 - alpha) * behind[i]) / 255.0;
        EXPECT_LE(std::abs(blended.samples8[i] - exact), 0.5);
      }
    }
  }
}

TEST(Background, GreyStaysGreyOverGrey) {
  const Image clear = picture(2, {100, 128});
  EXPECT_EQ(blend(clear, parse_color("black")).channels, 1);
  EXPECT_EQ(blend(clear, parse_color("black")).samples8, (std::vector<std::uint8_t>{50}));
  EXPECT_EQ(blend(clear, parse_color("#f00")).samples8, (std::vector<std::uint8_t>{177, 50, 50}));
}

}  // namespace
}  // namespace similis::cli
