// SPDX-License-Identifier: Apache-2.0
#include "src/media/video/code_mapping.h"

#include <gtest/gtest.h>

#include "src/media/crop.h"

namespace similis::media {
namespace {

VideoFormat format(int depth, const char* range) {
  return {.width = 4, .height = 2, .pixels = {.bit_depth = depth}, .color = {.range = range}};
}

// Four codes of luma and one of each chroma plane, mapped.
std::vector<int> mapped(const VideoFormat& from, const VideoFormat& to, std::vector<int> codes) {
  const auto store = [](const TensorView& view, std::int64_t i, int code) {
    if (view.dtype == DType::u8) {
      static_cast<std::uint8_t*>(view.data())[i] = static_cast<std::uint8_t>(code);
    } else {
      static_cast<std::uint16_t*>(view.data())[i] = static_cast<std::uint16_t>(code);
    }
  };
  const auto load = [](const TensorView& view, std::int64_t i) -> int {
    return view.dtype == DType::u8 ? static_cast<const std::uint8_t*>(view.data())[i]
                                   : static_cast<const std::uint16_t*>(view.data())[i];
  };
  VideoFrame frame{.number = 3, .bytes = std::vector<std::uint8_t>(from.frame_bytes())}, out;
  for (std::int64_t i = 0; i < 4; ++i) {
    store(frame.plane(from, 0), i, codes[static_cast<std::size_t>(i)]);
  }
  for (int plane = 1; plane < 3; ++plane) {
    store(frame.plane(from, plane), 0, codes[static_cast<std::size_t>(3 + plane)]);
  }
  CodeMapping(from, to).run(frame, out);
  EXPECT_EQ(out.number, 3);
  std::vector<int> result;
  for (std::int64_t i = 0; i < 4; ++i) result.push_back(load(out.plane(to, 0), i));
  for (int plane = 1; plane < 3; ++plane) result.push_back(load(out.plane(to, plane), 0));
  return result;
}

TEST(CodeMapping, DepthsOfLimitedRangeAreShifted) {
  EXPECT_EQ(mapped(format(8, "tv"), format(10, "tv"), {16, 17, 235, 255, 128, 240}),
      (std::vector<int>{64, 68, 940, 1020, 512, 960}));
  EXPECT_EQ(mapped(format(8, ""), format(16, ""), {1, 2, 3, 255, 128, 240}),
      (std::vector<int>{256, 512, 768, 65280, 32768, 61440}));
}

TEST(CodeMapping, DepthsOfFullRangeAreScaled) {
  // 17·1023/255 = 68.2, 128·1023/255 = 513.506
  EXPECT_EQ(mapped(format(8, "pc"), format(10, "pc"), {0, 17, 128, 255, 128, 255}),
      (std::vector<int>{0, 68, 514, 1023, 514, 1023}));
}

TEST(CodeMapping, RangesAreConvertedByShare) {
  // (126 - 16)·255/219 = 128.08; chroma 144: 16·255/224 + 128 = 146.2; codes beyond are clipped
  EXPECT_EQ(mapped(format(8, "tv"), format(8, "pc"), {16, 126, 235, 10, 128, 144}),
      (std::vector<int>{0, 128, 255, 0, 128, 146}));
  // 128·219/255 + 16 = 125.9; chroma 255: 127·224/255 + 128 = 239.6
  EXPECT_EQ(mapped(format(8, "pc"), format(8, ""), {0, 128, 255, 1, 128, 255}),
      (std::vector<int>{16, 126, 235, 17, 128, 240}));
  EXPECT_EQ(mapped(format(8, "pc"), format(10, "tv"), {0, 255, 0, 0, 128, 128}),
      (std::vector<int>{64, 940, 64, 64, 512, 512}));
}

TEST(Crop, FramesLoseTheirMargins) {
  const VideoFormat from{.width = 6, .height = 4, .pixels = {}};
  VideoFrame frame{.number = 5, .bytes = std::vector<std::uint8_t>(from.frame_bytes())}, out;
  for (std::size_t i = 0; i < frame.bytes.size(); ++i) {
    frame.bytes[i] = static_cast<std::uint8_t>(i);
  }
  const Crop crop{.left = 2, .right = 1, .top = 2, .bottom = 0};
  const VideoFormat to = cropped(from, crop, "a.y4m");
  EXPECT_EQ(to.width, 3);
  EXPECT_EQ(to.height, 2);
  crop_frame(frame, from, crop, out);
  // Luma rows 2 and 3 from column 2; chroma planes of 3x2 begin at 24 and 30, row 1 from column 1.
  EXPECT_EQ(out.bytes, (std::vector<std::uint8_t>{14, 15, 16, 20, 21, 22, 28, 29, 34, 35}));
  EXPECT_EQ(out.number, 5);
}

}  // namespace
}  // namespace similis::media
