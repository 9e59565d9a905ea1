// SPDX-License-Identifier: Apache-2.0
#include "src/media/video/y4m.h"

#include "src/media/open.h"
#include "src/media/video/test_video.h"

namespace similis::media {
namespace {

using testing::HasSubstr;

VideoFormat parse(const std::string& parameters) {
  return parse_y4m_header("YUV4MPEG2 " + parameters, "a.y4m");
}

std::string refusal_of(const std::string& line) {
  try {
    parse_y4m_header(line, "a.y4m");
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return {};
}

ReadVideo read_bytes(const Buffer& bytes) {
  const TestFolder folder;
  write_content(folder.file("a.y4m"), bytes);
  try {
    return read_all(*open_media(folder.file("a.y4m")).video);
  } catch (const InvalidArgument& error) {
    return {{}, error.what()};
  }
}

struct Tag {
  const char* tag;
  const char* pixels;
};

TEST(Y4m, EveryColourTagIsRead) {
  for (const auto& [tag, pixels] :
      {Tag{"", "yuv420p"}, Tag{" C420", "yuv420p"}, Tag{" C420jpeg", "yuv420p"},
          Tag{" C420mpeg2", "yuv420p"}, Tag{" C420paldv", "yuv420p"}, Tag{" C411", "yuv411p"},
          Tag{" C422", "yuv422p"}, Tag{" C444", "yuv444p"}, Tag{" C444alpha", "yuva444p"},
          Tag{" Cmono", "gray"}, Tag{" Cmono9", "gray9le"}, Tag{" Cmono10", "gray10le"},
          Tag{" Cmono12", "gray12le"}, Tag{" Cmono16", "gray16le"}, Tag{" C420p9", "yuv420p9le"},
          Tag{" C420p10", "yuv420p10le"}, Tag{" C422p10", "yuv422p10le"},
          Tag{" C444p12", "yuv444p12le"}, Tag{" C420p14", "yuv420p14le"},
          Tag{" C422p16", "yuv422p16le"}, Tag{" XYSCSS=420P10", "yuv420p10le"},
          Tag{" XYSCSS=411", "yuv411p"}, Tag{" C422 XYSCSS=420P10", "yuv422p"}}) {
    const VideoFormat format{.width = 7, .height = 5, .pixels = *pixel_format(pixels)};
    const Buffer bytes = y4m_noise(format, tag, 2);
    const ReadVideo video = read_bytes(bytes);
    EXPECT_EQ(video.error, "") << tag;
    ASSERT_EQ(video.frames.size(), 2u) << tag;
    EXPECT_EQ(video.frames[1], noise_frame(format, 2)) << tag;
  }
}

TEST(Y4m, OtherParametersChangeNothing) {
  const VideoFormat plain = parse("W4 H2");
  EXPECT_EQ(plain.width, 4);
  EXPECT_EQ(plain.height, 2);
  for (const char* more : {" F30000:1001", " It", " Ib", " Im", " I?", " A0:0", " A128:117",
           " Xany,thing", " C420 XYSCSS=420JPEG", "  F25:1 "}) {
    VideoFormat format = parse(std::string("W4 H2") + more);
    format.rate = {};
    EXPECT_EQ(format, plain) << more;
  }
  const VideoFormat format{.width = 7, .height = 5};
  const ReadVideo video = read_bytes(y4m_noise(format, "", 2, 1, "FRAME Ip Xfoo=bar"));
  EXPECT_EQ(video.error, "");
  EXPECT_EQ(video.frames.size(), 2u);
}

TEST(Y4m, RangeAndSitingAreRead) {
  EXPECT_EQ(parse("W4 H2").color, ColorTags{});
  EXPECT_EQ(parse("W4 H2 XCOLORRANGE=FULL").color.range, "pc");
  EXPECT_EQ(parse("W4 H2 XCOLORRANGE=LIMITED").color.range, "tv");
  EXPECT_EQ(parse("W4 H2 C420jpeg").color.siting, "center");
  EXPECT_EQ(parse("W4 H2 C420mpeg2").color.siting, "left");
  EXPECT_EQ(parse("W4 H2 C420paldv").color.siting, "topleft");
}

TEST(Y4m, HeadersThatSayNothingUsableAreRefused) {
  EXPECT_EQ(refusal_of("YUV4MPEG2 W4 H2 C421"),
      "cannot read a.y4m: its colour tag is 421, which is not supported");
  EXPECT_EQ(refusal_of("YUV4MPEG2 W4x H2"),
      "cannot read a.y4m: its header has W4x; the width must be a number");
  EXPECT_THAT(refusal_of("YUV4MPEG2 H2"), HasSubstr("it has no pixels (0 x 2)"));
  EXPECT_THAT(refusal_of("YUV4MPEG2 W99999999999999999999 H2"), HasSubstr("must be a number"));
  EXPECT_THAT(refusal_of("YUV4MPEG2 W1000000 H1000000"), HasSubstr("it must have at most"));
  for (const char* tag :
      {"420p", "420p8", "420p11x", "mono8", "444alpha10", "p10", "4444", "rgb"}) {
    EXPECT_THAT(refusal_of(std::string("YUV4MPEG2 W4 H2 C") + tag), HasSubstr("its colour tag is"))
        << tag;
  }
  std::string endless(kY4mMagic);
  endless.append(100000, 'X').append("\n");
  const Buffer bytes(endless.begin(), endless.end());
  EXPECT_THAT(read_bytes(bytes).error, HasSubstr("its first line is longer than 4096 bytes"));
}

// Wherever it is cut, the whole frames before are read and the error says where it ends.
TEST(Y4m, CutsKeepTheFramesBefore) {
  const VideoFormat format{.width = 6, .height = 4};
  const Buffer whole = y4m_noise(format, "", 3);
  const std::size_t frame = format.frame_bytes() + 6, header = whole.size() - 3 * frame;
  for (std::size_t length = header; length <= whole.size(); ++length) {
    const ReadVideo video =
        read_bytes({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)});
    EXPECT_EQ(video.frames.size(), (length - header) / frame) << length;
    EXPECT_EQ(video.error.empty(), (length - header) % frame == 0) << length << video.error;
  }
  for (std::size_t length = 10; length < header; ++length) {
    EXPECT_THAT(
        read_bytes({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)}).error,
        HasSubstr("or cut off"));
  }
}

TEST(Y4m, LostFramingIsAnError) {
  const VideoFormat format{.width = 6, .height = 4};
  Buffer bytes = y4m_noise(format, "", 3);
  bytes[bytes.size() - format.frame_bytes() - 6] = 'f';
  const ReadVideo video = read_bytes(bytes);
  EXPECT_EQ(video.frames.size(), 2u);
  EXPECT_THAT(video.error, HasSubstr("frame 2 does not begin with a FRAME line"));
}

}  // namespace
}  // namespace similis::media
