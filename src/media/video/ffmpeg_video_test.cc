// SPDX-License-Identifier: Apache-2.0
// Frames that ffmpeg decodes are those that were encoded, if the codec is lossless.
#include <algorithm>

#include "src/media/io/child_process.h"
#include "src/media/io/test_ffmpeg.h"
#include "src/media/open.h"
#include "src/media/video/test_video.h"

namespace similis::media {
namespace {

using testing::HasSubstr;

class FfmpegVideo : public WithFfmpeg {
 protected:
  // Writes `frames` of noise in the pixel format through ffmpeg.
  void encode(const std::string& name, const std::string& pixels, int frames,
      const std::vector<std::string>& coding) {
    const VideoFormat format{.width = 16, .height = 12, .pixels = *pixel_format(pixels)};
    write_content(folder_.file("in.yuv"), raw_noise(format, frames));
    std::vector<std::string> arguments = {"ffmpeg", "-v", "error", "-y", "-f", "rawvideo",
        "-pix_fmt", pixels, "-s", "16x12", "-r", "25", "-i", folder_.file("in.yuv")};
    arguments.insert(arguments.end(), coding.begin(), coding.end());
    arguments.push_back(folder_.file(name));
    const auto result = run_program(arguments, {}, {.output_bytes = 1000});
    ASSERT_TRUE(result->succeeded) << result->errors;
  }
  ReadVideo read(const std::string& name) {
    try {
      return read_all(*open_media(folder_.file(name)).video);
    } catch (const InvalidArgument& error) {
      return {{}, error.what()};
    }
  }
  void expect_frames(const ReadVideo& video, const std::string& pixels, std::uint32_t frames) {
    const VideoFormat format{.width = 16, .height = 12, .pixels = *pixel_format(pixels)};
    EXPECT_EQ(video.error, "");
    ASSERT_EQ(video.frames.size(), frames);
    for (std::uint32_t i = 0; i < frames; ++i) {
      EXPECT_EQ(video.frames[i], noise_frame(format, 1 + i)) << i;
    }
  }
  TestFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(Programs, FfmpegVideo, kPrograms, programs_name);

TEST_P(FfmpegVideo, LosslessVideoComesAsItWentIn) {
  for (const char* pixels : {"yuv420p", "yuv422p", "yuv444p", "yuv422p10le", "gray"}) {
    encode("a.mkv", pixels, 5, {"-c:v", "ffv1"});
    expect_frames(read("a.mkv"), pixels, 5);
  }
  encode("b.avi", "yuv422p", 3, {"-c:v", "rawvideo", "-pix_fmt", "yuyv422"});
  expect_frames(read("b.avi"), "yuv422p", 3);
}

// Frames a second apart and frames at the same time: each once.
TEST_P(FfmpegVideo, FramesAreNeitherRepeatedNorDropped) {
  encode("a.mkv", "yuv420p", 6, {"-vf", "setpts=if(lt(N\\,3)\\,N\\,N*40)", "-c:v", "ffv1"});
  expect_frames(read("a.mkv"), "yuv420p", 6);
}

TEST_P(FfmpegVideo, DamageIsAnErrorBehindTheFramesBefore) {
  encode("a.mkv", "yuv420p", 40, {"-c:v", "ffv1", "-slicecrc", "1", "-level", "3"});
  Buffer bytes = content(folder_.file("a.mkv"));
  for (std::size_t i = bytes.size() / 2; i < bytes.size() / 2 + 60; ++i) bytes[i] ^= 0x55;
  write_content(folder_.file("a.mkv"), bytes);
  const ReadVideo video = read("a.mkv");
  EXPECT_LT(video.frames.size(), 40u);
  EXPECT_THAT(video.error, HasSubstr("it is cut off or damaged at or after frame"));
}

TEST_P(FfmpegVideo, AChangeOfSizeHalfWayIsAnError) {
  encode("a.m1v", "yuv420p", 3, {"-c:v", "mpeg1video"});
  encode("b.m1v", "yuv420p", 3, {"-c:v", "mpeg1video", "-vf", "pad=32:32"});
  Buffer bytes = content(folder_.file("a.m1v"));
  append(bytes, content(folder_.file("b.m1v")));
  write_content(folder_.file("c.m1v"), bytes);
  const ReadVideo video = read("c.m1v");
  EXPECT_LE(video.frames.size(), 3u);
  EXPECT_THAT(video.error, HasSubstr("it is cut off or damaged at or after frame"));
}

// As its rotation says, without a change of its samples.
TEST_P(FfmpegVideo, TurnedVideoIsTurned) {
  encode("a.mp4", "yuv420p", 2, {"-c:v", "libx264", "-qp", "0"});
  // The first way came with ffmpeg 6, the second went with it.
  const auto turn = [&](const std::vector<std::string>& input,
                        const std::vector<std::string>& output) {
    std::vector<std::string> arguments = {"ffmpeg", "-v", "error", "-y"};
    arguments.insert(arguments.end(), input.begin(), input.end());
    arguments.insert(arguments.end(), {"-i", folder_.file("a.mp4"), "-c", "copy"});
    arguments.insert(arguments.end(), output.begin(), output.end());
    arguments.push_back(folder_.file("b.mp4"));
    return run_program(arguments, {}, {.output_bytes = 1000})->succeeded;
  };
  ASSERT_TRUE(turn({"-display_rotation", "90"}, {}) || turn({}, {"-metadata:s:v:0", "rotate=90"}));
  const auto video = open_media(folder_.file("b.mp4")).video;
  EXPECT_EQ(video->format().width, 12);
  EXPECT_EQ(video->format().height, 16);
  EXPECT_EQ(read("b.mp4").frames.size(), 2u);
}

TEST_P(FfmpegVideo, VideoInRgbIsPictures) {
  encode("a.mkv", "yuv444p", 3, {"-pix_fmt", "gbrp", "-c:v", "ffv1"});
  const OpenedMedia media = open_media(folder_.file("a.mkv"));
  ASSERT_TRUE(media.picture);
  EXPECT_EQ(media.picture->frames, 3);
  const std::vector<Image> pictures = all_pictures(media.bytes);
  ASSERT_EQ(pictures.size(), 3u);
  EXPECT_EQ(pictures[0].channels, 3);
  EXPECT_NE(pictures[0].samples8, pictures[2].samples8);
}

TEST_P(FfmpegVideo, WhatIsNoVideoIsToldApart) {
  write_content(folder_.file("a.yuv"), raw_noise({.width = 16, .height = 12}, 2));
  EXPECT_THAT(read("a.yuv").error, HasSubstr("raw video needs --size WxH and --pix-fmt FORMAT"));
  encode("a.bmp", "yuv420p", 1, {"-pix_fmt", "bgr24"});
  EXPECT_EQ(open_media(folder_.file("a.bmp")).picture->width, 16);
}

}  // namespace
}  // namespace similis::media
