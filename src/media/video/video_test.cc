// SPDX-License-Identifier: Apache-2.0
#include "src/media/video/video.h"

#include <sys/stat.h>

#include <thread>

#include "src/media/open.h"
#include "src/media/picture/formats/png_writer.h"
#include "src/media/video/test_video.h"

namespace similis::media {
namespace {

using testing::HasSubstr;

VideoFormat video_format(std::int64_t width, std::int64_t height, const char* pixels) {
  return {.width = width, .height = height, .pixels = *pixel_format(pixels)};
}

ReadVideo read_file(const std::string& path, const std::optional<RawVideo>& raw = {}) {
  try {
    return read_all(*open_media(path, raw).video);
  } catch (const InvalidArgument& error) {
    return {{}, error.what()};
  }
}

RawVideo raw_video(const VideoFormat& format) {
  return {.width = format.width, .height = format.height, .pixels = format.pixels};
}

TEST(PixelFormats, AreFfmpegsPlanarOnes) {
  EXPECT_EQ(pixel_format("yuv420p"), PixelFormat{});
  const auto deep = pixel_format("yuv422p12le");
  ASSERT_TRUE(deep);
  EXPECT_EQ(deep->bit_depth, 12);
  EXPECT_EQ(chroma_name(*deep), "422");
  EXPECT_EQ(pixel_format("yuv422p12"), deep);
  EXPECT_EQ(chroma_name(*pixel_format("gray16le")), "400");
  EXPECT_EQ(chroma_name(*pixel_format("yuv411p")), "411");
  EXPECT_EQ(chroma_name(*pixel_format("yuvj440p")), "440");
  EXPECT_TRUE(pixel_format("yuva444p10le")->has_alpha);
  for (const char* name : {"", "yuv", "yuv420p10be", "yuv420p7", "yuv420p17", "yuv420p010", "rgb24",
           "nv12", "grayf32le", "gray8", "yuv420p-9", "yuv420ple"}) {
    EXPECT_FALSE(pixel_format(name)) << name;
  }
}

TEST(VideoFormat, OddSidesAreRoundedUpInChroma) {
  const VideoFormat format = video_format(17, 9, "yuv420p10le");
  EXPECT_EQ(format.plane_width(0), 17);
  EXPECT_EQ(format.plane_width(1), 9);
  EXPECT_EQ(format.plane_height(2), 5);
  EXPECT_EQ(format.frame_bytes(), 2u * (17 * 9 + 2 * 9 * 5));
  VideoFrame frame{.bytes = noise_frame(format, 1)};
  const TensorView cr = frame.plane(format, 2);
  EXPECT_EQ(cr.shape, (Extents{5, 9}));
  EXPECT_EQ(cr.dtype, DType::u16);
  EXPECT_EQ(static_cast<std::uint8_t*>(cr.data()) - frame.bytes.data(), 2 * (17 * 9 + 9 * 5));
}

TEST(Raw, FramesComeAsTheyStand) {
  const TestFolder folder;
  for (const char* pixels : {"yuv420p", "yuv422p10le", "yuv444p16le", "gray", "gray12le"}) {
    const VideoFormat format = video_format(7, 5, pixels);
    write_content(folder.file("a.yuv"), raw_noise(format, 3));
    const ReadVideo video = read_file(folder.file("a.yuv"), raw_video(format));
    EXPECT_EQ(video.error, "");
    ASSERT_EQ(video.frames.size(), 3u) << pixels;
    for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(video.frames[i], noise_frame(format, 1 + i));
  }
}

TEST(Raw, WhatIsNoWholeFrameIsAnErrorBehindThoseThatAre) {
  const TestFolder folder;
  const VideoFormat format = video_format(8, 4, "yuv420p");
  const std::string path = folder.file("a.yuv");
  Buffer bytes = raw_noise(format, 2);
  bytes.resize(bytes.size() + 7);
  write_content(path, bytes);
  const ReadVideo video = read_file(path, raw_video(format));
  EXPECT_EQ(video.frames.size(), 2u);
  EXPECT_EQ(video.error, "cannot read " + path +
                             ": frame 2 has 7 of its 48 bytes (8×4 pixels); the file is cut off, "
                             "or --size or --pix-fmt is wrong");
  write_content(path, {});
  EXPECT_EQ(read_file(path, raw_video(format)).error, "cannot read " + path + ": it is empty");
}

TEST(Raw, SamplesBeyondTheirDepthAreAnError) {
  const TestFolder folder;
  write_content(folder.file("a.yuv"), raw_noise(video_format(8, 4, "gray12le"), 1));
  const ReadVideo video =
      read_file(folder.file("a.yuv"), raw_video(video_format(8, 4, "gray10le")));
  EXPECT_TRUE(video.frames.empty());
  EXPECT_THAT(video.error, HasSubstr("; a sample of 10 bits is at most 1023"));
}

TEST(Raw, SizesBeyondTheLimitAreRefused) {
  const TestFolder folder;
  write_content(folder.file("a.yuv"), Buffer(10));
  EXPECT_THAT(read_file(folder.file("a.yuv"), RawVideo{1 << 20, 1 << 20, {}}).error,
      HasSubstr("it must have at most"));
}

TEST(OpenMedia, ContentDecides) {
  const TestFolder folder;
  const VideoFormat format = video_format(6, 4, "yuv420p");
  write_content(folder.file("a.png"), y4m_noise(format, " C420", 1));
  VideoFormat found =
      open_media(folder.file("a.png"), raw_video(video_format(2, 2, "gray"))).video->format();
  found.rate = {};
  EXPECT_EQ(found, format) << "y4m is never raw";
  write_png(folder.file("b.yuv"), gradient(9, 8, 3));
  const OpenedMedia picture = open_media(folder.file("b.yuv"));
  EXPECT_FALSE(picture.video);
  EXPECT_EQ(picture.picture->width, 9);
}

// A pipe whose writer goes away in a frame.
TEST(OpenMedia, AVanishedPipeKeepsWhatCame) {
  const TestFolder folder;
  const std::string path = folder.file("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  Buffer bytes = y4m_noise(video_format(64, 48, "yuv420p"), "", 3);
  bytes.resize(bytes.size() - 100);
  std::thread writer([&] { write_content(path, bytes); });
  const ReadVideo video = read_file(path);
  writer.join();
  EXPECT_EQ(video.frames.size(), 2u);
  EXPECT_EQ(
      video.error, "cannot read " + path + ": it is cut off in frame 2, after 4508 of 4608 bytes");
}

// The luma of frames of noise, of a file and of a pipe, and the words if it breaks off.
std::vector<ReadVideo> read_luma(const Buffer& bytes) {
  const TestFolder folder;
  const std::string file = folder.file("a.y4m"), pipe = folder.file("pipe.y4m");
  write_content(file, bytes);
  EXPECT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { write_content(pipe, bytes); });
  std::vector<ReadVideo> videos;
  for (const std::string& path : {file, pipe}) {
    const auto source = open_media(path).video;
    source->keep_planes(1);
    videos.push_back(read_all(*source));
  }
  writer.join();
  return videos;
}

TEST(KeptPlanes, OthersAreReadOver) {
  struct Tag {
    const char *tag, *pixels;
  };
  for (const auto& [tag, pixels] : {Tag{"", "yuv420p"}, Tag{" C422p10", "yuv422p10le"},
           Tag{" Cmono", "gray"}, Tag{" C444alpha", "yuva444p"}}) {
    const VideoFormat format = video_format(301, 211, pixels);  // more than a buffer of chroma
    for (const ReadVideo& video : read_luma(y4m_noise(format, tag, 3))) {
      EXPECT_EQ(video.error, "") << tag;
      ASSERT_EQ(video.frames.size(), 3u) << tag;
      Buffer expected = noise_frame(format, 3);
      if (!format.pixels.has_alpha) expected.resize(format.plane_bytes(0));
      EXPECT_EQ(video.frames[2], expected) << tag;
    }
  }
}

TEST(KeptPlanes, OthersAreCheckedToo) {
  const VideoFormat format = video_format(301, 211, "yuv420p10le");
  Buffer bytes = y4m_noise(format, " C420p10", 3);
  bytes.back() = 0xff;
  for (const ReadVideo& video : read_luma(bytes)) {
    EXPECT_EQ(video.frames.size(), 2u);
    EXPECT_THAT(video.error, HasSubstr("frame 2 has a sample of 65"));
  }
  for (const char* pixels : {"yuv420p", "yuv420p10le"}) {
    const VideoFormat of_file = video_format(301, 211, pixels);
    bytes = y4m_noise(of_file, of_file.pixels.bit_depth == 8 ? "" : " C420p10", 3);
    bytes.resize(bytes.size() - 100);
    for (const ReadVideo& video : read_luma(bytes)) {
      EXPECT_EQ(video.frames.size(), 2u);
      EXPECT_THAT(video.error, HasSubstr("it is cut off in frame 2, after"));
    }
  }
}

TEST(OpenMedia, TransparentVideoIsRefused) {
  const TestFolder folder;
  const VideoFormat format = video_format(6, 4, "yuva444p");
  Buffer bytes = y4m_noise(format, " C444alpha", 2);
  write_content(folder.file("a.y4m"), bytes);
  EXPECT_EQ(read_file(folder.file("a.y4m")).error, "");
  bytes.back() = 254;
  write_content(folder.file("a.y4m"), bytes);
  EXPECT_THAT(read_file(folder.file("a.y4m")).error, HasSubstr("frame 1 has transparent pixels"));
}

}  // namespace
}  // namespace similis::media
