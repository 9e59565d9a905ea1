// SPDX-License-Identifier: Apache-2.0
#include "src/media/io/ffmpeg.h"

#include "src/media/io/child_process.h"
#include "src/media/io/test_cost.h"
#include "src/media/io/test_ffmpeg.h"
#include "src/media/picture/formats/test_png.h"

namespace similis::media {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class Ffmpeg : public WithFfmpeg {};
INSTANTIATE_TEST_SUITE_P(Programs, Ffmpeg, kPrograms, programs_name);

// The file that ffmpeg encodes raw samples to.
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

// A DPX picture, a format that only ffmpeg reads.
Buffer dpx_file(const Buffer& samples, const std::string& pixels, const std::string& size) {
  return encoded(samples, pixels, size, {"-c:v", "dpx", "-f", "image2pipe"});
}

TEST_P(Ffmpeg, SamplesOf8BitsAreKept) {
  for (const auto& [channels, pixels] : {std::pair(1, "gray"), {3, "rgb24"}, {4, "rgba"}}) {
    const Image image = noise(16, 9, channels, 8);
    const Image read = read_image(dpx_file(image.samples8, pixels, "16x9"), "a.dpx");
    expect_pixels(read, image);
    EXPECT_EQ(read.frames, 1);
    EXPECT_EQ(read.format, "dpx");
  }
}

TEST_P(Ffmpeg, SamplesOf16BitsAreKept) {
  const Image image = noise(16, 9, 3, 16);
  Buffer samples;
  for (const std::uint16_t code : image.samples16) {
    samples.push_back(static_cast<std::uint8_t>(code));
    samples.push_back(static_cast<std::uint8_t>(code >> 8));
  }
  expect_pixels(read_image(dpx_file(samples, "rgb48le", "16x9"), "a.dpx"), image);
}

TEST_P(Ffmpeg, TenBitRgbKeepsItsCodes) {
  const Image image = noise(16, 8, 3, 16, 10);
  Buffer planes;  // green, blue, red
  for (const std::size_t channel : {1, 2, 0}) {
    for (std::size_t i = channel; i < image.samples16.size(); i += 3) {
      const std::uint16_t code = rescale_code(image.samples16[i], 16, 10);
      planes.push_back(static_cast<std::uint8_t>(code));
      planes.push_back(static_cast<std::uint8_t>(code >> 8));
    }
  }
  expect_pixels(read_image(dpx_file(planes, "gbrp10le", "16x8"), "a.dpx"), image);
}

// One component, which names one of the file's own colours.
TEST_P(Ffmpeg, PalettesAreColours) {
  Image image = noise(13, 9, 3, 8);
  for (std::uint8_t& sample : image.samples8) sample = sample < 128 ? 0 : 255;
  const Buffer bytes =
      encoded(image.samples8, "rgb24", "13x9", {"-pix_fmt", "rgb8", "-c:v", "gif", "-f", "gif"});
  const Image read = read_image(bytes, "a.gif");
  ASSERT_EQ(read.channels, 4);
  for (std::size_t i = 0; i < image.samples8.size(); ++i) {
    EXPECT_NEAR(read.samples8[i / 3 * 4 + i % 3], image.samples8[i], 3) << i;  // 7·36 is 252
  }
}

TEST_P(Ffmpeg, AnimationSaysItsFrames) {
  const Image frames = noise(16, 16 * 5, 3, 8);
  const Buffer bytes = encoded(frames.samples8, "rgb24", "16x16", {"-f", "gif"});
  const Image read = read_image(bytes, "a.gif");
  EXPECT_EQ(read.frames, 5);
  EXPECT_EQ(read.width, 16);
  EXPECT_EQ(read.height, 16);
}

// ffmpeg 5.1 cannot read more than 64 KiB of GIF from a pipe.
TEST_P(Ffmpeg, LongAnimationsAreRead) {
  const Image frames = noise(160, 120 * 6, 3, 8);
  const Buffer bytes = encoded(frames.samples8, "rgb24", "160x120", {"-f", "gif"});
  ASSERT_GT(bytes.size(), std::size_t{1} << 16);
  EXPECT_EQ(read_image(bytes, "a.gif").frames, 6);
  int count = 0;
  read_pictures(bytes, "a.gif", [&](const Image&) { return ++count > 0; });
  EXPECT_EQ(count, 6);
}

// ffmpeg makes up what such files lack, with a word on standard error or without. There are few
// cuts, since each starts programs.
TEST_P(Ffmpeg, CutsAreRefused) {
  const Image image = noise(32, 24, 3, 8);
  const Buffer whole = dpx_file(image.samples8, "rgb24", "32x24");
  for (const std::size_t length : {std::size_t{9}, whole.size() / 2, whole.size() - 1}) {
    const Buffer cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    const std::string words = refusal(cut, "cut.img");
    EXPECT_THAT(words, StartsWith("cannot read cut.img: ")) << length;
    EXPECT_THAT(words, Not(HasSubstr("\n"))) << length;
  }
}

// The beginning of a DPX file, with other sides.
Buffer promise_of(std::uint32_t width, std::uint32_t height) {
  constexpr std::size_t kWidthAt = 772, kBytes = 2048 + 300;
  Buffer bytes = dpx_file(noise(32, 24, 3, 8).samples8, "rgb24", "32x24");
  bytes.resize(kBytes);
  Buffer sides;
  append_u32(sides, width);
  append_u32(sides, height);
  std::copy(sides.begin(), sides.end(), bytes.begin() + kWidthAt);
  return bytes;
}

TEST_P(Ffmpeg, PromisesThatTheFileCannotKeepAreRefused) {
  for (const std::uint32_t side : {16000, 60000}) {
    EXPECT_THAT(
        refused_at_once(promise_of(side, side), "big.dpx"), StartsWith("cannot read big.dpx: "));
  }
}

TEST_P(Ffmpeg, PlaylistOpensNothing) {
  const TestFolder folder;
  write_content(folder.file("secret.dpx"), dpx_file(noise(8, 8, 3, 8).samples8, "rgb24", "8x8"));
  const std::string list = "ffconcat version 1.0\nfile '" + folder.file("secret.dpx") + "'\n";
  EXPECT_THAT(
      refusal(Buffer(list.begin(), list.end()), "list.png"), StartsWith("cannot read list.png: "));
}

// ffmpeg itself says all that ffprobe does.
TEST_P(Ffmpeg, ProfilesAndColoursAreSeen) {
  Buffer profile = {'a', 0, 0}, packed(100);
  uLongf size = packed.size();
  const Buffer data(40, 7);
  compress2(packed.data(), &size, data.data(), data.size(), 9);
  profile.insert(profile.end(), packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(size));
  const Buffer plain = png_file({3, 1, 8, 2}, {}, Buffer(10));
  const Buffer tagged = png_file({3, 1, 8, 2}, {png_chunk("iCCP", profile)}, Buffer(10));
  for (const Buffer& bytes : {plain, tagged}) {
    const auto probed = probe_by_ffmpeg({.input = {"-i", "pipe:0"}, .entries = {}, .bytes = bytes});
    ASSERT_TRUE(probed && probed->probe);
    EXPECT_EQ(probed->result.errors, "");
    EXPECT_EQ(probed->probe->codec, "png");
    EXPECT_EQ(probed->probe->container, "png_pipe");
    EXPECT_EQ(probed->probe->pixel_format, "rgb24");
    EXPECT_EQ(probed->probe->has_profile, bytes == tagged);
  }
}

TEST(WithoutFfmpeg, ErrorSaysWhatToInstall) {
  const std::string path = std::getenv("PATH");
  const ChosenFfmpeg none(nullptr);
  setenv("PATH", "/nowhere", 1);
  const std::string words = refusal(Buffer{'B', 'M', 0, 0}, "a.bmp");
  const std::string program = ffmpeg_program();
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(words,
      "cannot read a.bmp: a picture other than PNG, JPEG, WebP, AVIF, JXL, TIFF, PNM, PAM, PFM, "
      "BMP "
      "and QOI needs ffmpeg, but there is no ffmpeg on PATH; install it (on Debian: apt install "
      "ffmpeg)");
  EXPECT_EQ(program, "");
  const ChosenFfmpeg chosen("/nowhere/ffmpeg");
  EXPECT_EQ(refusal(Buffer{'B', 'M', 0, 0}, "a.bmp"),
      "cannot read a.bmp: a picture other than PNG, JPEG, WebP, AVIF, JXL, TIFF, PNM, PAM, PFM, "
      "BMP "
      "and QOI needs ffmpeg, but there is no /nowhere/ffmpeg; SIMILIS_FFMPEG names it");
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

constexpr std::string_view kLog = R"([info] Input #0, mov,mp4, from 'file:a.mp4':
[info]     title           : [error] fmt:gray s:1x1
[mov @ 0x1] [warning] it is odd
[mov @ 0x1] [error] it is torn
[Parsed_showinfo_0 @ 0x2] [info] config in time_base: 1/25, frame_rate: 25/1
[Parsed_showinfo_0 @ 0x2] [info] n:   0 pts:  0 fmt:PIXELS cl:left sar:1/1 s:40x30 i:P
[Parsed_showinfo_0 @ 0x2] [info]   side data - unknown side data type 15 (588 bytes)
[Parsed_showinfo_0 @ 0x2] [info] color_range:tv color_primaries:bt2020 color_trc:smpte2084
[Parsed_showinfo_0 @ 0x2] [info] n:   1 pts:  1 fmt:gray cl:left sar:1/1 s:8x8 i:P
)";
constexpr std::string_view kPackets = R"(#tb 0: 1/25
#codec_id 0: h264
#dimensions 0: 40x30
0, 0, 0, 1, 465, 0xefcfcd4a
0, 1, 1, 1, 465, 0xefcfcd4a
)";
constexpr std::string_view kFormats =
    R"(FLAGS NAME            NB_COMPONENTS BITS_PER_PIXEL BIT_DEPTHS
-----
IO... gray                   1              8      8
I..P. pal8                   1              8      8
IO... yuva420p10le           4             25      10-10-10-12
IO... gbrpf32le              3             96      32-32-32
IO... old                    3             24
)";

std::optional<Probe> report_with(const std::string& pixels) {
  std::string log(kLog);
  log.replace(log.find("PIXELS"), 6, pixels);
  return parse_report(log, kPackets, kFormats);
}

TEST(Report, SaysWhatTheStreamIs) {
  const auto probe = report_with("yuva420p10le");
  ASSERT_TRUE(probe);
  EXPECT_EQ(probe->codec, "h264");
  EXPECT_EQ(probe->container, "mov,mp4");
  EXPECT_EQ(probe->width, 40);
  EXPECT_EQ(probe->height, 30);
  EXPECT_EQ(probe->channels, 4);
  EXPECT_EQ(probe->bit_depth, 12);
  EXPECT_EQ(probe->frames, 2);
  EXPECT_EQ(probe->has_profile, true);
  EXPECT_EQ(code_points(*probe), (Cicp{9, 16}));
  EXPECT_EQ(report_with("gray")->channels, 1);
  EXPECT_EQ(report_with("pal8")->channels, 4);
  EXPECT_TRUE(report_with("gbrpf32le")->is_float);
}

TEST(Report, WhatItCannotUseIsEmpty) {
  EXPECT_FALSE(report_with("unheard"));
  EXPECT_FALSE(report_with("old")) << "before ffmpeg 5 there are no depths";
  for (const char* size : {"", "40", "40x", "x30", "-1x30", "40x30x20", "99999999999999999999x1"}) {
    std::string log(kLog);
    log.replace(log.find("PIXELS"), 6, "gray");
    log.replace(log.find("40x30"), 5, size);
    EXPECT_FALSE(parse_report(log, kPackets, kFormats)) << size;
  }
  EXPECT_FALSE(parse_report({}, {}, {}));
}

TEST(Probe, UnknownNameOfColoursIsNoCodePoint) {
  EXPECT_EQ(code_points({}), Cicp{});
  EXPECT_EQ(code_points({.primaries = "unknown", .transfer = "unknown"}), Cicp{});
  EXPECT_FALSE(code_points({.primaries = "film"}));
}

}  // namespace
}  // namespace similis::media
