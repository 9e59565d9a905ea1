// SPDX-License-Identifier: Apache-2.0
// SSIMULACRA 2 as the program measures it: pictures with alpha and profiles, video in every format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "similis/ssimulacra2.hpp"
#include "src/cli/inputs/picture_pair.h"
#include "src/cli/metrics/metric_request.h"
#include "src/media/picture/color.h"
#include "src/media/video/video_color.h"
#include "tests/arrays.h"
#include "tests/refusal.h"

namespace similis::cli {
namespace {

using media::Image;
using testing::Contains;
using testing::Pair;

constexpr std::int64_t kWidth = 40, kHeight = 30;

Image picture(int channels, int bit_depth, std::uint32_t seed, double noise) {
  Image image{.width = kWidth, .height = kHeight, .channels = channels, .bit_depth = bit_depth};
  for (std::int64_t i = 0; i < kWidth * kHeight * channels; ++i) {
    const double ramp = static_cast<double>(i / channels % kWidth) / kWidth;
    const double value = .2 + .5 * ramp + noise * test::uniform(seed, i);
    if (bit_depth == 8) {
      image.samples8.push_back(static_cast<std::uint8_t>(255 * value));
    } else {
      image.samples16.push_back(static_cast<std::uint16_t>(65535 * value));
    }
  }
  return image;
}

Measure measure(const std::string& text = "ssimulacra2") { return requested_measures({text})[0]; }

double score(const Image& x, const Image& y, const Measure& with = measure()) {
  const PicturePair pair = pair_pictures(x, y, "ref.png", "dis.png", {}, {});
  return with.value(pair.frames, {});
}

double library_score(const Image& x, const Image& y) {
  const auto view = [](const Image& image) {
    return TensorView(image.samples8.data(), {image.channels, kHeight, kWidth},
        {1, kWidth * image.channels, image.channels}, DType::u8);
  };
  return item(ssimulacra2(view(x), view(y)));
}

TEST(Ssimulacra2Metric, PicturesAreTakenAsTheyAre) {
  for (const int channels : {1, 2, 3, 4}) {
    const Image x = picture(channels, 8, 1, .1), y = picture(channels, 8, 2, .2);
    EXPECT_EQ(score(x, y), library_score(x, y)) << channels;
    EXPECT_EQ(score(x, picture(3, 8, 2, .2)), library_score(x, picture(3, 8, 2, .2))) << channels;
  }
}

TEST(Ssimulacra2Metric, DepthsMayDiffer) {
  const Image x = picture(3, 8, 1, .1), y = picture(3, 8, 2, .2);
  Image wide = y;
  wide.bit_depth = 16;
  wide.samples16.assign(y.samples8.begin(), y.samples8.end());
  for (std::uint16_t& sample : wide.samples16) sample = static_cast<std::uint16_t>(sample * 257);
  EXPECT_NEAR(score(x, wide), score(x, y), 1e-2);
}

TEST(Ssimulacra2Metric, OtherColoursGoThroughLight) {
  const Image x = picture(3, 16, 1, .1), y = picture(3, 16, 2, .2);
  const media::ColorSpace p3{.cicp = media::Cicp{.primaries = 12, .transfer = 13}};
  const double expected = score(x, y);
  EXPECT_NEAR(
      score(media::convert_color(x, p3, "x"), media::convert_color(y, p3, "y")), expected, .1);
  EXPECT_NEAR(score(x, media::convert_color(y, p3, "y")), expected, .1);
  Image mislabelled = y;
  mislabelled.color = p3;
  EXPECT_GT(std::abs(score(x, mislabelled) - expected), .005);  // nearly grey
  Image clear = picture(4, 16, 1, .1), clear_y = picture(4, 16, 2, .2);
  const double of_clear = score(clear, clear_y);
  clear.color.gamma = 1 / 2.2;
  clear.color.chromaticities =
      media::Chromaticities{{.3127, .3290}, {.6401, .3301}, {.3001, .6002}, {.1501, .0602}};
  clear_y.color.cicp = media::Cicp{.primaries = 1, .transfer = 4};
  EXPECT_NEAR(score(clear, clear_y), of_clear, 4);  // nearly sRGB, by way of lcms2
}

TEST(Ssimulacra2Metric, AMapShowsThePicture) {
  const Image x = picture(3, 8, 1, .1), y = picture(3, 8, 2, .2);
  const PicturePair pair = pair_pictures(x, y, "ref.png", "dis.png", {}, {});
  const Tensor map = measure().map(pair.frames, {});
  EXPECT_EQ(map.shape, (Extents{1, 1, kHeight, kWidth}));
}

TEST(Ssimulacra2Metric, PicturesHaveNoSettingsOfVideo) {
  const Image x = picture(3, 8, 1, .1);
  const PicturePair pair = pair_pictures(x, x, "ref.png", "dis.png", {}, {});
  EXPECT_EQ(measure("ssimulacra2=mode=fast").media_settings(pair.frames.as_read),
      (Settings{{"mode", "\"fast\""}}));
}

// One frame of one format.
struct Video {
  media::VideoFormat format;
  media::VideoFrame frame;

  Video(const char* pixels, std::uint32_t seed)
      : format{kWidth, kHeight, *media::pixel_format(pixels)} {
    for (std::size_t i = 0; i < format.frame_bytes(); ++i) {
      const double wave = std::sin(static_cast<double>(i % kWidth) / 7);
      frame.bytes.push_back(static_cast<std::uint8_t>(
          128 + 60 * wave + 40 * test::uniform(seed, static_cast<std::int64_t>(i))));
    }
  }
};

// 8 bits as 10, two zeros behind.
Video shifted(const Video& video, const char* pixels) {
  Video result(pixels, 1);
  result.frame.bytes.clear();
  for (const std::uint8_t byte : video.frame.bytes) {
    const int wide = byte * 4;
    result.frame.bytes.push_back(static_cast<std::uint8_t>(wide & 255));
    result.frame.bytes.push_back(static_cast<std::uint8_t>(wide >> 8));
  }
  return result;
}

FramePair frames_of(const Video& x, const Video& y) {
  FramePair pair;
  pair.as_read.video = std::make_shared<const std::array<VideoFrameAsRead, 2>>(
      std::array{VideoFrameAsRead{&x.frame, &x.format, "ref.y4m"},
          VideoFrameAsRead{&y.frame, &y.format, "dis.y4m"}});
  return pair;
}

double score(const Video& x, const Video& y, const Measure& with) {
  return with.value(frames_of(x, y), {});
}

Settings settings(const Video& x, const Video& y, const Measure& with) {
  return with.media_settings(frames_of(x, y).as_read);
}

TEST(Ssimulacra2Metric, AVideoAgainstItselfIs100AndTenBitsScoreAsEight) {
  for (const char* chroma : {"yuv420p", "yuv422p", "yuv444p", "gray"}) {
    const Video x(chroma, 1), y(chroma, 2);
    const std::string wide = std::string(chroma) + "10le";
    for (const char* range : {"limited", "full"}) {
      const Measure with = measure(std::string("ssimulacra2=range=") + range);
      EXPECT_EQ(score(x, x, with), 100) << chroma;
      EXPECT_LT(score(x, y, with), 95) << chroma;
    }
    const Measure with = measure();
    const double expected = score(x, y, with);
    EXPECT_NEAR(score(shifted(x, wide.c_str()), shifted(y, wide.c_str()), with), expected, 1e-6);
    EXPECT_NEAR(score(x, shifted(y, wide.c_str()), with), expected, 1e-6);
  }
}

TEST(Ssimulacra2Metric, EveryChoiceMovesTheScoreAndIsSaid) {
  const Video x("yuv420p", 1), y("yuv420p", 2);
  const double plain = score(x, y, measure());
  for (const char* choice : {"matrix=bt2020", "transfer=bt709", "transfer=linear",
           "primaries=bt2020", "range=full", "siting=center", "upsampling=nearest", "mode=fast"}) {
    const Measure with = measure(std::string("ssimulacra2=") + choice);
    EXPECT_NE(score(x, y, with), plain) << choice;
    const std::string text(choice);
    const std::size_t equals = text.find('=');
    EXPECT_THAT(settings(x, y, with),
        Contains(Pair(text.substr(0, equals), "\"" + text.substr(equals + 1) + "\"")));
  }
}

TEST(Ssimulacra2Metric, TheStreamDecidesThenTheDefaults) {
  Video x("yuv420p", 1), y("yuv420p", 2);
  EXPECT_EQ(settings(x, y, measure()),
      (Settings{{"mode", "\"exact\""}, {"matrix", "\"bt601\""}, {"transfer", "\"srgb\""},
          {"primaries", "\"bt709\""}, {"range", "\"limited\""}, {"siting", "\"left\""},
          {"upsampling", "\"bilinear\""}}));
  x.format.color = {.range = "pc", .matrix = "bt709", .siting = "center"};
  const Settings of_tags = settings(x, y, measure());
  EXPECT_THAT(of_tags, Contains(Pair("range", "\"full\"")));
  EXPECT_THAT(of_tags, Contains(Pair("distorted_range", "\"limited\"")));
  EXPECT_THAT(of_tags, Contains(Pair("matrix", "\"bt709\"")));
  EXPECT_THAT(of_tags, Contains(Pair("siting", "\"center\"")));
  x.format.color.transfer = "smpte2084";
  test::expect_refusal([&] { score(x, y, measure()); },
      "the transfer function of ref.y4m is PQ (smpte2084), which is not supported: ssimulacra2 is "
      "defined for standard dynamic range; tone-map both videos first");
}

TEST(VideoColor, BilinearChromaLiesWhereItsSitingSays) {
  const media::VideoFormat format{8, 2, *media::pixel_format("yuv422p")};
  media::VideoFrame frame;
  frame.bytes.assign(16, 16);
  frame.bytes.insert(frame.bytes.end(), 8, 128);
  for (int row = 0; row < 2; ++row) {
    for (const int cr : {128, 160, 192, 224}) frame.bytes.push_back(static_cast<std::uint8_t>(cr));
  }
  const auto red = [&](media::ChromaSiting siting, std::int64_t x) {
    const Tensor rgb = media::to_rgb(frame, format, {.siting = siting}, {});
    return rgb.elements<float>()[x * 3];
  };
  const auto expected = [](double cr) { return 2 * (1 - .2126) * (cr - 128) / 224; };
  EXPECT_NEAR(red(media::ChromaSiting::left, 2), expected(160), 1e-6);
  EXPECT_NEAR(red(media::ChromaSiting::left, 3), expected(176), 1e-6);
  EXPECT_NEAR(red(media::ChromaSiting::center, 2), expected(152), 1e-6);
  EXPECT_NEAR(red(media::ChromaSiting::center, 3), expected(168), 1e-6);
}

}  // namespace
}  // namespace similis::cli
