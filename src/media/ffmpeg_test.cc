// SPDX-License-Identifier: Apache-2.0
#include "src/media/ffmpeg.h"

#include "src/media/program.h"
#include "src/media/test_cost.h"
#include "src/media/test_png.h"

namespace similis::media {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class Ffmpeg : public testing::Test {
 protected:
  void SetUp() override {
    if (ffmpeg_program().empty()) GTEST_SKIP() << "ffmpeg is not installed";
  }
};

// What ffmpeg makes of raw samples.
Buffer encoded(const Buffer& samples, const std::string& pixels, const std::string& size,
    const std::vector<std::string>& output) {
  std::vector<std::string> arguments = {
      "ffmpeg", "-v", "error", "-f", "rawvideo", "-pix_fmt", pixels, "-s", size, "-i", "pipe:0"};
  arguments.insert(arguments.end(), output.begin(), output.end());
  arguments.push_back("pipe:1");
  const auto result = run_program(arguments, samples, {.output_bytes = 1 << 24});
  EXPECT_TRUE(result && result->succeeded) << (result ? result->errors : "");
  return result ? result->output : Buffer();
}

Buffer portable_map(const std::string& header, const Buffer& samples) {
  Buffer bytes(header.begin(), header.end());
  bytes.insert(bytes.end(), samples.begin(), samples.end());
  return bytes;
}

TEST_F(Ffmpeg, PortableMapsOf8BitsKeepEverySample) {
  for (const int channels : {1, 3}) {
    const Image image = noise(13, 9, channels, 8);
    const Image read = read_image(
        portable_map(channels == 1 ? "P5\n13 9\n255\n" : "P6\n13 9\n255\n", image.samples8),
        "a.ppm");
    expect_pixels(read, image);
    EXPECT_EQ(read.frames, 1);
    EXPECT_EQ(read.format, channels == 1 ? "pgm" : "ppm");
    EXPECT_EQ(read.color, ColorSpace{});
  }
}

TEST_F(Ffmpeg, PortableMapsOf16BitsKeepEverySample) {
  for (const int channels : {1, 3}) {
    const Image image = noise(13, 9, channels, 16);
    Buffer samples;
    for (const std::uint16_t code : image.samples16) {
      samples.push_back(static_cast<std::uint8_t>(code >> 8));
      samples.push_back(static_cast<std::uint8_t>(code));
    }
    expect_pixels(
        read_image(portable_map(channels == 1 ? "P5\n13 9\n65535\n" : "P6\n13 9\n65535\n", samples),
            "a.ppm"),
        image);
  }
}

TEST_F(Ffmpeg, TenBitRgbKeepsItsCodes) {
  const Image image = noise(16, 8, 3, 16, 10);
  Buffer planes;  // green, blue, red
  for (const std::size_t channel : {1, 2, 0}) {
    for (std::size_t i = channel; i < image.samples16.size(); i += 3) {
      const std::uint16_t code = rescale_code(image.samples16[i], 16, 10);
      planes.push_back(static_cast<std::uint8_t>(code));
      planes.push_back(static_cast<std::uint8_t>(code >> 8));
    }
  }
  expect_pixels(
      read_image(encoded(planes, "gbrp10le", "16x8", {"-c:v", "dpx", "-f", "image2pipe"}), "a.dpx"),
      image);
}

// A QOI file that spells out every pixel, RGB or RGBA.
Buffer qoi_file(const Image& image) {
  constexpr std::uint8_t kRgb = 0xfe, kRgba = 0xff;
  const auto channels = static_cast<std::uint8_t>(image.channels);
  Buffer bytes = {'q', 'o', 'i', 'f'};
  append_u32(bytes, static_cast<std::uint32_t>(image.width));
  append_u32(bytes, static_cast<std::uint32_t>(image.height));
  bytes.insert(bytes.end(), {channels, 0});
  for (auto pixel = image.samples8.begin(); pixel != image.samples8.end(); pixel += channels) {
    bytes.push_back(channels == 3 ? kRgb : kRgba);
    bytes.insert(bytes.end(), pixel, pixel + channels);
  }
  bytes.insert(bytes.end(), {0, 0, 0, 0, 0, 0, 0, 1});
  return bytes;
}

TEST_F(Ffmpeg, AlphaIsKept) {
  const Image image = noise(13, 9, 4, 8);
  expect_pixels(read_image(qoi_file(image), "a.qoi"), image);
}

TEST_F(Ffmpeg, AnimationSaysItsFrames) {
  const Image frames = noise(16, 16 * 5, 3, 8);
  const Buffer bytes = encoded(frames.samples8, "rgb24", "16x16", {"-f", "gif"});
  const Image read = read_image(bytes, "a.gif");
  EXPECT_EQ(read.frames, 5);
  EXPECT_EQ(read.width, 16);
  EXPECT_EQ(read.height, 16);
}

// ffmpeg makes up what such files lack, with a word on standard error or without. There are few
// cuts, since each starts programs.
TEST_F(Ffmpeg, CutsAreRefused) {
  const Image image = noise(32, 24, 3, 8);
  for (const Buffer& whole : {portable_map("P6\n32 24\n255\n", image.samples8), qoi_file(image)}) {
    for (const std::size_t length : {std::size_t{9}, whole.size() / 2, whole.size() - 1}) {
      const Buffer cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
      const std::string words = refusal(cut, "cut.img");
      EXPECT_THAT(words, StartsWith("cannot read cut.img: ")) << length;
      EXPECT_THAT(words, Not(HasSubstr("\n"))) << length;
    }
  }
}

TEST_F(Ffmpeg, PromisesThatTheFileCannotKeepAreRefused) {
  EXPECT_THAT(refused_at_once(portable_map("P6\n60000 60000\n255\n", Buffer(300)), "big.ppm"),
      StartsWith("cannot read big.ppm: "));
  EXPECT_EQ(refused_at_once(portable_map("P6\n16000 16000\n255\n", Buffer(300)), "fits.ppm"),
      "cannot read fits.ppm: it is 16000 x 16000 pixels in 319 bytes; it must have at most 65536 "
      "pixels a byte");
}

TEST_F(Ffmpeg, PlaylistOpensNothing) {
  const TestFolder folder;
  write_content(
      folder.file("secret.ppm"), portable_map("P6\n8 8\n255\n", noise(8, 8, 3, 8).samples8));
  const std::string list = "ffconcat version 1.0\nfile '" + folder.file("secret.ppm") + "'\n";
  EXPECT_THAT(
      refusal(Buffer(list.begin(), list.end()), "list.png"), StartsWith("cannot read list.png: "));
}

TEST(WithoutFfmpeg, ErrorSaysWhatToInstall) {
  const std::string path = std::getenv("PATH");
  setenv("PATH", "/nowhere", 1);
  const std::string words = refusal(Buffer{'B', 'M', 0, 0}, "a.bmp");
  const std::string program = ffmpeg_program();
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(words,
      "cannot read a.bmp: a file that is no PNG, JPEG, WebP, AVIF, JXL or TIFF needs ffmpeg, and "
      "there is no ffprobe on PATH; install it (on Debian: apt install ffmpeg)");
  EXPECT_EQ(program, "");
}

constexpr std::string_view kProbe = R"({
  "pixel_formats": [
    {"name": "gray", "nb_components": 1, "flags": {"alpha": 0}, "components": [{"bit_depth": 8}]},
    {"name": "yuva420p10le", "nb_components": 4, "flags": {"alpha": 1},
      "components": [{"bit_depth": 10}, {"bit_depth": 10}, {"bit_depth": 10}, {"bit_depth": 10}]},
    {"name": "gbrpf32le", "nb_components": 3, "flags": {"alpha": 0}, "components": [{"bit_depth": 32}]}
  ],
  "streams": [{"codec_name": "x", "width": 40, "height": 30, "pix_fmt": "PIXELS",
    "color_primaries": "bt2020", "color_transfer": "smpte2084", "nb_read_packets": "7",
    "side_data_list": [{"rotation": -90}]}]
})";

std::optional<Probe> probe_with(const std::string& pixels) {
  std::string json(kProbe);
  json.replace(json.find("PIXELS"), 6, pixels);
  return parse_probe(json);
}

TEST(Probe, SaysWhatTheStreamIs) {
  const auto probe = probe_with("yuva420p10le");
  ASSERT_TRUE(probe);
  EXPECT_EQ(probe->width, 40);
  EXPECT_EQ(probe->height, 30);
  EXPECT_EQ(probe->channels, 4);
  EXPECT_EQ(probe->bit_depth, 10);
  EXPECT_EQ(probe->frames, 7);
  EXPECT_TRUE(probe->is_turned);
  EXPECT_FALSE(probe->is_float);
  EXPECT_EQ(code_points(*probe), (Cicp{9, 16}));
  EXPECT_EQ(probe_with("gray")->channels, 1);
  EXPECT_TRUE(probe_with("gbrpf32le")->is_float);
}

TEST(Probe, WhatItCannotUseIsEmpty) {
  EXPECT_FALSE(probe_with("unheard"));
  for (const char* json : {"", "{", "[]", "3", "{}", R"({"streams": []})", R"({"streams": [3]})",
           R"({"streams": {}, "pixel_formats": 7})", R"({"streams": [{"width": "x"}]})"}) {
    EXPECT_FALSE(parse_probe(json)) << json;
  }
}

TEST(Probe, NestingWithoutEndIsReadWithoutRecursion) {
  std::string json(kProbe);
  const std::size_t depth = 1'000'000;
  json.replace(json.find("PIXELS"), 6, "gray");
  json.insert(json.find("\"codec_name\""),
      "\"nested\": " + std::string(depth, '[') + std::string(depth, ']') + ", ");
  EXPECT_TRUE(parse_probe(json));
}

TEST(Probe, NumbersWithoutMeaningAreNoPicture) {
  for (const char* number : {"-9223372036854775808", "0", "5", "9223372036854775807", "1e9"}) {
    std::string json(kProbe);
    json.replace(json.find("PIXELS"), 6, "yuva420p10le");
    const std::string count = "\"nb_components\": 4";
    json.replace(json.find(count), count.size(), "\"nb_components\": " + std::string(number));
    EXPECT_FALSE(parse_probe(json)) << number;
  }
}

TEST(Probe, UnknownNameOfColoursIsNoCodePoint) {
  EXPECT_EQ(code_points({}), Cicp{});
  EXPECT_EQ(code_points({.primaries = "unknown", .transfer = "unknown"}), Cicp{});
  EXPECT_FALSE(code_points({.primaries = "film"}));
}

}  // namespace
}  // namespace similis::media
