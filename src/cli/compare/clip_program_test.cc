// SPDX-License-Identifier: Apache-2.0
// `similis compare -m vmaf` and the features of its models, end to end, beside `similis vmaf`.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "src/cli/test_program.h"
#include "src/core/joined.h"
#include "src/gpu/device.h"
#include "src/media/video/test_video.h"

namespace similis::cli {
namespace {

using media::Buffer;
using testing::HasSubstr;
using testing::StartsWith;

class ClipProgram : public ProgramTest {
 protected:
  static media::VideoFormat format(
      std::int64_t width = 40, std::int64_t height = 36, const char* pixels = "yuv420p") {
    return {.width = width, .height = height, .pixels = *media::pixel_format(pixels)};
  }
  ClipProgram() {
    write_bytes("r.y4m", media::y4m_noise(format(), "", 7, 1));
    write_bytes("a.y4m", media::y4m_noise(format(), "", 7, 2));
    write_bytes("b.y4m", media::y4m_noise(format(), "", 7, 3));
    write_bytes("c.y4m", media::y4m_noise(format(), "", 4, 4));
  }
  // The numbers of `similis vmaf`, by frame.
  Json vmaf(const std::string& distorted, std::vector<std::string> more) const {
    std::vector<std::string> arguments = {"vmaf", "-r", "r.y4m", "-d", distorted, "-q", "--json",
        "--precision", "max", "-o", "-", "-m", "version=vmaf_v0.6.1", "--feature",
        "vif=debug=true"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Json::parse(run(arguments).out)["frames"];
  }
  static void expect_equal(const Json& frame, const Json& expected) {
    EXPECT_EQ(frame["frame"], expected["frameNum"]);
    const Json& numbers = expected["metrics"];
    for (const auto& [name, column] : {std::pair{"vmaf", "vmaf"}, {"vif", "integer_vif"},
             {"vif-scale0", "integer_vif_scale0"}, {"vif-scale3", "integer_vif_scale3"},
             {"adm", "integer_adm2"}, {"adm-aim", "integer_aim"}, {"adm-adm3", "integer_adm3"},
             {"adm-scale2", "integer_adm_scale2"}, {"motion", "integer_motion2"},
             {"motion-motion3", "integer_motion3"},
             {"motion-sad", "VMAF_integer_feature_motion_sad_score"}}) {
      EXPECT_EQ(frame[name], numbers[column]) << name;
    }
  }
  const std::vector<std::string> all_ = {"-m", "vmaf", "-m", "vif", "-m", "adm", "-m", "motion"};
  Json scores(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), all_.begin(), all_.end());
    return json(std::move(arguments));
  }
};

TEST_F(ClipProgram, NumbersAreThoseOfVmafForAnyNumberOfThreads) {
  const Json expected = vmaf("a.y4m", {});
  for (const char* threads : {"1", "2", "7"}) {
    const Json document = scores({"r.y4m", "a.y4m", "--threads", threads, "-m", "mse"});
    ASSERT_EQ(document["frames"].size(), 7u);
    for (std::size_t i = 0; i < 7; ++i) expect_equal(document["frames"][i], expected[i]);
    EXPECT_TRUE(document["frames"][6].contains("mse-y"));
    EXPECT_EQ(document["settings"]["metrics"]["vmaf"]["model"], "vmaf_v0.6.1");
    EXPECT_EQ(document["settings"]["metrics"]["adm"]["adm_enhn_gain_limit"], 100);
  }
}

TEST_F(ClipProgram, EncodesOfOneReferenceHaveTheNumbersOfEach) {
  const Json document = scores({"r.y4m", "a.y4m", "b.y4m", "c.y4m"});
  ASSERT_EQ(document["encodes"].size(), 3u) << document.dump(1);
  for (std::size_t i = 0; i < 3; ++i) {
    const Json& frames = document["encodes"][i]["frames"];
    const Json expected = vmaf(i == 0 ? "a.y4m" : i == 1 ? "b.y4m" : "c.y4m", {});
    ASSERT_EQ(frames.size(), i == 2 ? 4u : 7u);
    for (std::size_t frame = 0; frame < frames.size(); ++frame) {
      expect_equal(frames[frame], expected[frame]);
    }
  }
}

TEST_F(ClipProgram, MotionSeesFramesThatAreNotShown) {
  const Json expected = vmaf("a.y4m", {"--subsample", "3"});
  const Json document = scores({"r.y4m", "a.y4m", "--every", "3"});
  ASSERT_EQ(document["frames"].size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) expect_equal(document["frames"][i], expected[i]);
  EXPECT_EQ(document["settings"]["selection"]["every"], 3);
}

TEST_F(ClipProgram, RowsOfCsvComeWhenTheyAreKnown) {
  const Outcome outcome = compare({"r.y4m", "a.y4m", "-m", "vmaf", "-m", "mse", "--format", "csv"});
  EXPECT_THAT(outcome.out, StartsWith("frame,vmaf,mse-y,mse-cb,mse-cr\n0,")) << outcome.err;
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 8);
}

TEST_F(ClipProgram, ModelsAndFeaturesHaveOptions) {
  const Json expected = vmaf(
      "a.y4m", {"-m", "version=vmaf_v0.6.1neg:name=neg:disable_clip", "-m",
                   "version=vmaf_b_v0.6.3:name=boot", "--feature", "adm=adm_enhn_gain_limit=1.5"});
  const Json document = json({"r.y4m", "a.y4m", "-m", "vmaf=model=vmaf_v0.6.1neg:disable_clip=true",
      "-m", "vmaf=model=vmaf_b_v0.6.3", "-m", "adm=adm_enhn_gain_limit=1.5"});
  for (std::size_t i = 0; i < 7; ++i) {
    const Json &frame = document["frames"][i], &numbers = expected[i]["metrics"];
    EXPECT_EQ(frame["vmaf=model=vmaf_v0.6.1neg:disable_clip=true"], numbers["neg"]);
    EXPECT_EQ(frame["vmaf=model=vmaf_b_v0.6.3"], numbers["boot"]);
    EXPECT_EQ(frame["vmaf=model=vmaf_b_v0.6.3-0020"], numbers["boot_0020"]);
    EXPECT_EQ(frame["vmaf=model=vmaf_b_v0.6.3-bagging"], numbers["boot_bagging"]);
    EXPECT_EQ(frame["adm-scale1"], numbers["integer_adm_scale1_egl_1.5"]);
  }
}

TEST_F(ClipProgram, FeaturesOfAFrameAreThoseOfVmaf) {
  write_bytes("r.y4m", media::y4m_noise(format(220, 40), "", 2, 1));
  write_bytes("a.y4m", media::y4m_noise(format(220, 40), "", 2, 2));
  write_bytes("b.y4m", media::y4m_noise(format(220, 40), "", 2, 5));
  const std::vector<std::string> metrics = {
      "-m", "cambi=window_size=120:eotf=pq", "-m", "psnr-hvs", "-m", "ciede"};
  std::vector<std::string> arguments = {"r.y4m", "a.y4m", "b.y4m"};
  arguments.insert(arguments.end(), metrics.begin(), metrics.end());
  const Json encodes = json(arguments)["encodes"];
  for (std::size_t encode = 0; encode < 2; ++encode) {
    const Json expected =
        vmaf(encode == 0 ? "a.y4m" : "b.y4m", {"--feature", "cambi=window_size=120:eotf=pq",
                                                  "--feature", "psnr_hvs", "--feature", "ciede"});
    for (std::size_t i = 0; i < 2; ++i) {
      const Json& frame = encodes[encode]["frames"][i];
      const Json& numbers = expected[i]["metrics"];
      EXPECT_EQ(frame["cambi"], numbers["cambi_eotf_pq_ws_120"]);
      EXPECT_EQ(frame["ciede"], numbers["ciede2000"]);
      EXPECT_EQ(frame["psnr-hvs"], numbers["psnr_hvs"]);
      EXPECT_EQ(frame["psnr-hvs-cr"], numbers["psnr_hvs_cr"]);
    }
  }
}

TEST_F(ClipProgram, AVideoThatIsCutOffKeepsAllItsFrames) {
  Buffer cut = media::y4m_noise(format(), "", 7, 2);
  cut.resize(cut.size() - 1);
  write_bytes("cut.y4m", cut);
  const Outcome outcome =
      compare({"r.y4m", "cut.y4m", "-m", "vmaf", "--format", "json", "-o", "out.json"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("cut.y4m: it is cut off in frame 6"));
  EXPECT_EQ(Json::parse(text_of("out.json.partial"))["frames"].size(), 6u);
}

TEST_F(ClipProgram, RefusalsNameTheFile) {
  write_bytes("s.y4m", media::y4m_noise(format(32, 40), "", 2, 1));
  write("p.png", reference_picture());
  expect_error({"compare", "s.y4m", "s.y4m", "-m", "vmaf"}, 1,
      "s.y4m: adm: frames are 32×40; width and height must be at least 33");
  expect_error({"compare", "p.png", "p.png", "-m", "vmaf"}, 1,
      "p.png: vmaf takes the luma of video; pictures and volumes have none");
  expect_error({"compare", "r.y4m", "a.y4m", "-m", "vmaf=model=vmaf_v9"}, 2,
      "-m vmaf=model=vmaf_v9: model is \"vmaf_v9\"; there is no model vmaf_v9; those there are: "
      "vmaf_v0.6.1, vmaf_v0.6.1neg, vmaf_4k_v0.6.1, vmaf_4k_v0.6.1neg, vmaf_b_v0.6.3");
  expect_error({"compare", "r.y4m", "a.y4m", "-m", "vif=vif_enhn_gain_limit=0"}, 2,
      "-m vif=vif_enhn_gain_limit=0: vif_enhn_gain_limit is \"0\"; it must be a number from 1 to "
      "100");
  expect_error({"compare", "r.y4m", "a.y4m", "-m", "vmaf=model=none.json"}, 1,
      "cannot read none.json: there is no such file");
}

TEST_F(ClipProgram, WithoutAGpuOneIsRefused) {
  if (gpu::device_count(DeviceKind::cuda) > 0) GTEST_SKIP() << "there is a GPU";
  expect_error({"compare", "r.y4m", "a.y4m", "-m", "vmaf", "--device", "cuda"}, 1,
      "--device cuda: " + gpu::describe(DeviceKind::cuda));
}

TEST_F(ClipProgram, OnAVulkanDeviceItIsRefused) {
  if (gpu::device_count(DeviceKind::vulkan) == 0) {
    GTEST_SKIP() << gpu::describe(DeviceKind::vulkan);
  }
  expect_error({"compare", "r.y4m", "a.y4m", "-m", "vmaf", "--device", "vulkan"}, 1,
      "a.y4m: vmaf has no kernels for Vulkan; leave out --device vulkan:0");
}

class ClipProgramOnAGpu : public ClipProgram {
 protected:
  void SetUp() override {
    if (gpu::device_count(DeviceKind::cuda) == 0) GTEST_SKIP() << gpu::describe(DeviceKind::cuda);
  }
  // All that is said of frames, as text: every digit counts.
  void expect_the_same_on_both(std::vector<std::string> arguments) const {
    const auto results = [&](const char* device) {
      std::vector<std::string> more = arguments;
      more.insert(more.end(), {"--device", device});
      Json document = json(more);
      EXPECT_EQ(document["device"], device);
      document.erase("device");
      return document.dump(1);
    };
    EXPECT_EQ(results("cuda:0"), results("cpu")) << joined(arguments, " ");
  }
};

TEST_F(ClipProgramOnAGpu, NumbersAreThoseOfTheCpu) {
  const std::vector<std::string> metrics = {"-m", "vmaf", "-m", "vif", "-m", "adm", "-m", "motion",
      "-m", "vmaf=model=vmaf_v0.6.1neg:disable_clip=true", "-m", "vmaf=model=vmaf_b_v0.6.3", "-m",
      "adm=adm_enhn_gain_limit=1.5", "-m", "motion=motion_five_frame_window=true"};
  for (const char* pixels : {"yuv420p", "yuv422p10le", "yuv444p12le", "yuv420p16le", "gray"}) {
    const media::VideoFormat video = format(67, 53, pixels);
    std::vector<std::string> names = {"r.yuv", "a.yuv", "b.yuv"};
    for (std::size_t i = 0; i < names.size(); ++i) {
      media::Buffer bytes;
      for (std::uint32_t frame = 0; frame < 5; ++frame) {
        if (i == 2 && frame == 3) break;  // b.yuv is shorter
        media::append(bytes, media::noise_frame(video, 10 * static_cast<std::uint32_t>(i) + frame));
      }
      write_bytes(names[i], bytes);
    }
    std::vector<std::string> pair = {"r.yuv", "a.yuv", "--size", "67x53", "--pix-fmt", pixels};
    pair.insert(pair.end(), metrics.begin(), metrics.end());
    expect_the_same_on_both(pair);
    std::vector<std::string> some = pair;
    some.insert(some.end(), {"--every", "2"});
    expect_the_same_on_both(some);
    pair.insert(pair.begin() + 2, "b.yuv");
    expect_the_same_on_both(pair);
  }
}

TEST_F(ClipProgramOnAGpu, WhatHasNoKernelsIsRefused) {
  for (const std::string metric : {"cambi", "psnr-hvs", "ciede"}) {
    expect_error({"compare", "r.y4m", "a.y4m", "-m", "vmaf", "-m", metric, "--device", "cuda"}, 1,
        "a.y4m: " + metric + " runs on the CPU alone; leave out --device cuda:0");
  }
}

TEST_F(ClipProgramOnAGpu, NumbersAreLibvmafs) {
  const char* folder = std::getenv("SIMILIS_TEST_DATA");
  const std::filesystem::path data = folder ? folder : SIMILIS_SOURCE_DIR "/../shared/data";
  std::ifstream stream(data / "golden_vmaf.json");
  if (!stream) GTEST_SKIP() << "no ../shared/data, and SIMILIS_TEST_DATA names no folder";
  const Json golden = Json::parse(stream)["cases"]["src01_10"];
  const auto path = [&](const char* side) {
    return (data / "video" / golden[side].get<std::string>()).string();
  };
  const Json frames = json({path("reference"), path("distorted"), "--size", "576x324", "--pix-fmt",
      "yuv420p10le", "-m", "vmaf", "-m", "vmaf=model=vmaf_4k_v0.6.1neg", "-m", "vif", "-m", "adm",
      "-m", "motion", "--device", "cuda"})["frames"];
  ASSERT_EQ(frames.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    for (const auto& [name, column] : {std::pair{"vmaf", "vmaf"},
             {"vmaf=model=vmaf_4k_v0.6.1neg", "uhdneg"}, {"vif-scale0", "integer_vif_scale0"},
             {"adm", "integer_adm2"}, {"adm-aim", "integer_aim"}, {"motion", "integer_motion2"}}) {
      EXPECT_EQ(frames[i][name], golden["columns"][column][i]) << name;
    }
  }
}

}  // namespace
}  // namespace similis::cli
