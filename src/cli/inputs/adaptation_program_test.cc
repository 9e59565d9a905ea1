// SPDX-License-Identifier: Apache-2.0
// The program on inputs that are made comparable on request: --resize, --crop, --depth, --range.
#include "src/cli/test_program.h"
#include "src/media/crop.h"
#include "src/media/resample/resample.h"

namespace similis::cli {
namespace {

using media::Buffer;
using media::Image;
using testing::HasSubstr;

class AdaptedInputs : public ProgramTest {
 protected:
  // One frame of y4m of 4:2:0, each plane of one code.
  void write_y4m(const std::string& name, int width, int height, std::array<int, 3> codes,
      const std::string& tags = "C420", int depth = 8) {
    const std::string header =
        fmt::format("YUV4MPEG2 W{} H{} F25:1 {}\nFRAME\n", width, height, tags);
    Buffer bytes(header.begin(), header.end());
    for (std::size_t plane = 0; plane < 3; ++plane) {
      const int shift = plane > 0 ? 1 : 0;
      const int count = ((width + shift) >> shift) * ((height + shift) >> shift);
      for (int i = 0; i < count; ++i) {
        bytes.push_back(static_cast<std::uint8_t>(codes[plane]));
        if (depth > 8) bytes.push_back(static_cast<std::uint8_t>(codes[plane] >> 8));
      }
    }
    write_bytes(name, bytes);
  }
};

TEST_F(AdaptedInputs, VideoIsResizedToTheReference) {
  if (media::resampling_library().empty()) GTEST_SKIP() << "this build has no zimg";
  write_y4m("a.y4m", 36, 24, {100, 90, 150});
  write_y4m("b.y4m", 27, 13, {100, 90, 148});
  expect_error({"compare", "a.y4m", "b.y4m"}, 1,
      "a.y4m is 36×24 but b.y4m is 27×13; sizes must match; --resize lanczos makes the distorted "
      "as large as the reference");
  const Outcome outcome =
      compare({"a.y4m", "b.y4m", "-m", "mse", "--resize", "lanczos", "--format", "json"});
  EXPECT_EQ(outcome.status, 0);
  const std::string words = fmt::format(
      "distorted resized from 27×13 to 36×24 by lanczos ({})", media::resampling_library());
  EXPECT_EQ(outcome.err, "similis: note: b.y4m: " + words + "\n");
  const Json document = Json::parse(outcome.out);
  EXPECT_EQ(document["frames"][0]["mse-y"], 0);
  EXPECT_EQ(document["frames"][0]["mse-cr"], 4);
  const Json& done = document["settings"]["done"];
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0]["side"], "distorted");
  EXPECT_EQ(done[0]["step"], "resize");
  EXPECT_EQ(done[0]["from"], Json::array({27, 13}));
  EXPECT_EQ(done[0]["size"], Json::array({36, 24}));
  EXPECT_EQ(done[0]["filter"], "lanczos");
  EXPECT_EQ(done[0]["words"], words);
}

TEST_F(AdaptedInputs, PicturesAreResizedAndNothingIsSaidOfEqualSizes) {
  if (media::resampling_library().empty()) GTEST_SKIP() << "this build has no zimg";
  const Image large = reference_picture(64, 48);
  write("a.png", large);
  write("b.png", media::resampled(large, 40, 30, media::Resampling::spline36, {}));
  write("c.png", media::resampled(media::resampled(large, 40, 30, media::Resampling::spline36, {}),
                     64, 48, media::Resampling::bicubic, {}));
  const Json of_b = json({"a.png", "b.png", "-m", "psnr,ssimulacra2", "--resize", "bicubic"});
  const Json of_c = json({"a.png", "c.png", "-m", "psnr,ssimulacra2", "--resize", "bicubic"});
  EXPECT_EQ(of_b["frames"], of_c["frames"]);
  EXPECT_EQ(of_b["settings"]["done"].size(), 1u);
  EXPECT_FALSE(of_c["settings"].contains("done"));
}

TEST_F(AdaptedInputs, MarginsAreLeftOut) {
  const Image whole = reference_picture(64, 48);
  write("whole.png", whole);
  write("part.png", media::cropped(whole, {.left = 5, .right = 2, .top = 3, .bottom = 1}, ""));
  const Json document = json({"part.png", "whole.png", "-m", "mse", "--crop-distorted", "5,2,3,1"});
  EXPECT_EQ(document["frames"][0]["mse"], 0);
  EXPECT_EQ(document["settings"]["done"][0]["words"],
      "distorted cropped by 5,2,3,1 (left, right, top, bottom) to 57×44");
  EXPECT_EQ(document["settings"]["done"][0]["margins"], Json::array({5, 2, 3, 1}));
  EXPECT_EQ(
      json({"whole.png", "whole.png", "-m", "mse", "--crop", "1,0,0,0"})["settings"]["done"].size(),
      2u)
      << "of both sides";
  expect_error({"compare", "whole.png", "whole.png", "--crop", "60,4,0,0"}, 1,
      "the crop 60,4,0,0 leaves nothing of whole.png, which is 64×48");
  expect_error({"compare", "whole.png", "whole.png", "--crop", "1,2,3"}, 2,
      "--crop is \"1,2,3\"; it must be L,R,T,B, the pixels to leave out at each side, or auto");
  write_y4m("a.y4m", 36, 24, {100, 90, 150});
  expect_error({"compare", "a.y4m", "a.y4m", "--crop", "1,0,0,0"}, 1,
      "the crop 1,0,0,0 would cut chroma samples of a.y4m; its left margin must be a multiple of 2 "
      "and its top margin one of 2");
}

TEST_F(AdaptedInputs, DepthsAreMatchedToTheDeeper) {
  write_y4m("a.y4m", 8, 6, {100, 90, 150});
  write_y4m("b.y4m", 8, 6, {400, 360, 602}, "C420p10 XYSCSS=420P10", 10);
  expect_error({"compare", "a.y4m", "b.y4m", "-m", "mse"}, 1,
      "a.y4m has 8 bits per sample but b.y4m has 10; bit depths must match, or give --depth match");
  for (const auto& [x, y, side] :
      {std::array{"a.y4m", "b.y4m", "reference"}, std::array{"b.y4m", "a.y4m", "distorted"}}) {
    const Json document = json({x, y, "-m", "mse", "-m", "psnr", "--depth", "match"});
    EXPECT_EQ(document["frames"][0]["mse-y"], 0);
    EXPECT_EQ(document["frames"][0]["mse-cr"], 4);
    EXPECT_EQ(document["settings"]["metrics"]["psnr"]["data_range"], 1023);
    EXPECT_EQ(document["settings"]["done"][0]["words"],
        fmt::format("{} converted from 8 to 10 bits per sample", side));
  }
}

TEST_F(AdaptedInputs, RangesAreMatchedOrComparedAsStored) {
  write_y4m("untagged.y4m", 8, 6, {235, 128, 128});
  write_y4m("full.y4m", 8, 6, {255, 128, 128}, "C420 XCOLORRANGE=FULL");
  expect_error({"compare", "untagged.y4m", "full.y4m", "-m", "mse"}, 1,
      "untagged.y4m has limited range (no tag) but full.y4m has full range; give "
      "--range match to convert, or --range as-stored if a tag is wrong");
  const Json matched = json({"untagged.y4m", "full.y4m", "-m", "mse", "--range", "match"});
  EXPECT_EQ(matched["frames"][0]["mse-y"], 0);
  EXPECT_EQ(
      matched["settings"]["done"][0]["words"], "distorted converted from full to limited range");
  const Json stored = json({"untagged.y4m", "full.y4m", "-m", "mse", "--range", "as-stored"});
  EXPECT_EQ(stored["frames"][0]["mse-y"], 400);
  EXPECT_EQ(stored["settings"]["done"][0]["words"],
      "code values compared as stored: the reference has limited range, the distorted full");
}

TEST_F(AdaptedInputs, WrongValuesAreNamed) {
  write("a.png", reference_picture());
  expect_error({"compare", "a.png", "a.png", "--resize", "nearest"}, 2,
      "--resize is \"nearest\"; it must be lanczos, spline36, bicubic or bilinear");
  expect_error(
      {"compare", "a.png", "a.png", "--depth", "8"}, 2, "--depth is \"8\"; it must be match");
  expect_error({"compare", "a.png", "a.png", "--range", "full"}, 2,
      "--range is \"full\"; it must be match or as-stored");
}

}  // namespace
}  // namespace similis::cli
