// SPDX-License-Identifier: Apache-2.0
#include "src/cli/inputs/frame_selection.h"

#include <gtest/gtest.h>

#include "src/cli/usage_error.h"
#include "tests/refusal.h"

namespace similis::cli {
namespace {

std::vector<std::int64_t> frames_of(const FrameSelection& selection) {
  std::vector<std::int64_t> frames;
  for (std::int64_t frame = 0; frame < 12; ++frame) {
    if (selection.has(frame)) frames.push_back(frame);
  }
  return frames;
}

TEST(FrameSelection, CountsFromTheFirstFrame) {
  using Frames = std::vector<std::int64_t>;
  EXPECT_EQ(frames_of(parse_frame_selection("2:9", "3", "")), (Frames{2, 5, 8}));
  EXPECT_EQ(frames_of(parse_frame_selection(":3", "", "")), (Frames{0, 1, 2}));
  EXPECT_EQ(frames_of(parse_frame_selection("9:", "2", "")), (Frames{9, 11}));
  EXPECT_EQ(frames_of(parse_frame_selection("", "5", "7")), (Frames{0, 5, 10}));
  EXPECT_EQ(frames_of(parse_frame_selection("", "5", "-2")), (Frames{5, 10}))
      << "frame 0 has no counterpart";
  EXPECT_EQ(parse_frame_selection("", "", ""), FrameSelection{});
}

TEST(FrameSelection, KnowsWhatComesNextAndHowMany) {
  for (const std::int64_t offset : {-3, 0, 4}) {
    for (const std::int64_t every : {1, 2, 5}) {
      const FrameSelection selection{.first = 1, .end = 10, .every = every, .offset = offset};
      std::int64_t both = 0;
      for (std::int64_t frame = 0; frame < 9; ++frame) {
        both += selection.has(frame) && frame + offset < 8;
        std::int64_t expected = frame;
        while (expected < 10 && !selection.has(expected)) ++expected;
        if (expected == 10) continue;
        EXPECT_EQ(selection.next(frame), expected) << frame << " " << offset;
      }
      EXPECT_EQ(selection.count(9, 8), both) << every << " " << offset;
    }
  }
  EXPECT_EQ(parse_frame_selection("50:", "", "").count(10, 10), 0);
}

TEST(FrameSelection, RefusesWhatIsNoSelection) {
  for (const char* text : {"5", "5:5", "6:5", "a:b", "-1:3", "1:2:3", "1:99999999999999"}) {
    test::expect_refusal([&] { parse_frame_selection(text, "", ""); },
        std::string("--frames is \"") + text +
            "\"; it must be A:B, the first frame and the one after the last");
  }
  test::expect_refusal([] { parse_frame_selection("", "0", ""); },
      "--every is \"0\"; it must be a whole number above 0");
  test::expect_refusal([] { parse_frame_selection("", "", "--1"); },
      "--offset is \"--1\"; it must be a number of frames, such as 3 or -3");
}

TEST(RawVideo, TakesASizeAndAPixelFormat) {
  const auto raw = parse_raw_video("1920x1080", "yuv422p10le");
  ASSERT_TRUE(raw);
  EXPECT_EQ(raw->width, 1920);
  EXPECT_EQ(raw->height, 1080);
  EXPECT_EQ(raw->pixels.bit_depth, 10);
  EXPECT_FALSE(parse_raw_video("", ""));
}

TEST(RawVideo, RefusesWhatItIsNot) {
  test::expect_refusal([] { parse_raw_video("4x4", ""); },
      "--size is given without --pix-fmt; raw video needs both");
  test::expect_refusal([] { parse_raw_video("", "gray"); },
      "--pix-fmt is given without --size; raw video needs both");
  for (const char* size : {"4", "4x", "x4", "0x4", "4x-4", "4X4", "4x4x4"}) {
    test::expect_refusal([&] { parse_raw_video(size, "gray"); },
        std::string("--size is \"") + size + "\"; it must be WxH, such as 1920x1080");
  }
  test::expect_refusal([] { parse_raw_video("4x4", "rgb24"); },
      "--pix-fmt is \"rgb24\"; it must be one of ffmpeg's YUV formats, such as yuv420p, "
      "yuv422p10le, nv12, p010le or gray");
}

}  // namespace
}  // namespace similis::cli
