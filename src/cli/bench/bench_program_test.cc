// SPDX-License-Identifier: Apache-2.0
// `similis bench` end to end: what it measures and says, and what it refuses.
#include <algorithm>

#include "src/cli/metrics/metrics.h"
#include "src/cli/test_program.h"
#include "src/gpu/device.h"

namespace similis::cli {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class Bench : public ProgramTest {
 protected:
  Outcome bench(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "bench");
    return run(std::move(arguments));
  }
  Json document(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--format", "json"});
    const Outcome outcome = bench(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return Json::parse(outcome.out);
  }
};

std::vector<std::string> names_of(const Json& metrics) {
  std::vector<std::string> names;
  for (const auto& [name, value] : metrics.items()) names.push_back(name);
  return names;
}

TEST_F(Bench, MeasuresEveryMetricOfPictures) {
  const Outcome outcome = bench({"--size", "216x180", "--seconds", "0", "--format", "json"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err, "");
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["device"], "cpu");
  EXPECT_EQ(json["settings"]["size"], (Json{216, 180}));
  EXPECT_EQ(names_of(json["metrics"]), metric_names());
  for (const auto& [name, metric] : json["metrics"].items()) {
    const double median = metric["median_ms"].get<double>();
    EXPECT_GT(median, 0) << name;
    EXPECT_EQ(metric["calls"], 1) << name;
    EXPECT_DOUBLE_EQ(metric["pairs_per_second"].get<double>(), 1000 / median) << name;
    EXPECT_DOUBLE_EQ(
        metric["megapixels_per_second"].get<double>(), 216 * 180 * 1e-6 * 1000 / median)
        << name;
    const std::vector<std::string> of_luma = {
        "integer-ssim", "float-ssim", "float-ms-ssim", "vmaf", "vif", "adm", "motion", "cambi"};
    const bool is_of_luma = std::find(of_luma.begin(), of_luma.end(), name) != of_luma.end();
    const bool is_of_video = name.starts_with("psnr-") || name == "ciede";
    EXPECT_EQ(metric["input"], is_of_luma ? "luma" : is_of_video ? "YUV" : "RGB") << name;
  }
}

TEST_F(Bench, PrintsATable) {
  const Outcome outcome =
      bench({"-m", "mse,float-ssim", "--size", "64x48", "--seconds=0", "--threads=3"});
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, StartsWith("pairs of 64×48 on cpu, 3 threads, "));
  EXPECT_THAT(outcome.out,
      ContainsRegex("\n\nmetric      input  +ms/pair +pairs/s +Mpixel/s\n"
                    "mse           RGB +[0-9]+\\.[0-9]{3} +[0-9]+\\.[0-9] +[0-9]+\\.[0-9]\n"
                    "float-ssim   luma +[0-9]+\\.[0-9]{3} +[0-9]+\\.[0-9] +[0-9]+\\.[0-9]\n$"));
  EXPECT_THAT(bench({"-m", "mse", "--size=8x8", "--seconds=0", "--threads=1"}).out,
      HasSubstr("1 thread, "));
}

TEST_F(Bench, CallsUntilTheSecondsAreOver) {
  const Json mse =
      document({"-m", "mse", "--size", "64x48", "--seconds", "0.05"})["metrics"]["mse"];
  const double calls = mse["calls"].get<double>();
  EXPECT_GT(calls, 1);
  EXPECT_GE(calls * mse["max_ms"].get<double>(), 50);
  EXPECT_LE(mse["min_ms"], mse["median_ms"]);
  EXPECT_LE(mse["median_ms"], mse["max_ms"]);
}

TEST_F(Bench, LargePicturesTakeLonger) {
  const auto fastest = [&](const char* size) {
    const Json json =
        document({"-m", "ssim", "--size", size, "--seconds", "0.02", "--threads", "1"});
    return json["metrics"]["ssim"]["min_ms"].get<double>();
  };
  EXPECT_GT(fastest("1024x1024"), 10 * fastest("32x32"));  // of 1000 times as many pixels
}

TEST_F(Bench, OptionsReachTheMetric) {
  const Json json = document({"-m", "ssim", "-m", "ssim=window_size=7", "--size", "64x48",
      "--seconds", "0", "--threads=2"});
  EXPECT_THAT(names_of(json["metrics"]), ElementsAre("ssim", "ssim=window_size=7"));
  EXPECT_EQ(json["settings"]["metrics"]["ssim=window_size=7"]["window_size"], 7);
  EXPECT_EQ(json["settings"]["metrics"]["ssim"]["data_range"], 255);
  EXPECT_EQ(json["settings"]["threads"], 2);
}

TEST_F(Bench, MeasuresVolumesToo) {
  const Outcome outcome = bench({"--size", "24x20x16", "--seconds", "0", "--format", "json"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.err, HasSubstr("similis: note: ssimulacra2 skipped: ssimulacra2: volumes "));
  EXPECT_THAT(outcome.err, HasSubstr("similis: note: integer-ssim skipped: integer-ssim takes "));
  const Json metrics = Json::parse(outcome.out)["metrics"];
  EXPECT_THAT(
      names_of(metrics), ElementsAre("psnr", "mse", "mae", "ssim", "ncc", "lncc", "mi", "nmi"));
  EXPECT_EQ(metrics["lncc"]["input"], "volume");
  EXPECT_DOUBLE_EQ(metrics["lncc"]["megavoxels_per_second"].get<double>(),
      metrics["lncc"]["pairs_per_second"].get<double>() * 24 * 20 * 16 * 1e-6);
}

TEST_F(Bench, WhatCannotRunIsLeftOutUnlessItWasAskedFor) {
  const Outcome outcome = bench({"--size", "64x48", "--seconds", "0"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.err, StartsWith("similis: note: ms-ssim skipped: ms_ssim: "));
  EXPECT_THAT(outcome.out, Not(HasSubstr("\nms-ssim ")));
  EXPECT_THAT(outcome.out, HasSubstr("\nssim "));
  const Outcome asked = bench({"-m", "mse", "-m", "ms-ssim", "--size", "64x48"});
  EXPECT_EQ(asked.status, 1);
  EXPECT_THAT(asked.err, StartsWith("similis: ms_ssim: "));
  EXPECT_EQ(asked.out, "");
}

// On a GPU where there is one; else in words why not.
TEST_F(Bench, MeasuresOnTheDeviceThatIsAskedFor) {
  if (gpu::device_count(DeviceKind::cuda) == 0) {
    expect_error(
        {"bench", "--device", "cuda"}, 1, "--device cuda: " + gpu::describe(DeviceKind::cuda));
    return;
  }
  const Json json = document(
      {"-m", "ssim", "-m", "ssimulacra2", "-m", "vmaf", "--size", "192x180", "--device", "cuda"});
  EXPECT_EQ(json["device"], "cuda:0");
  EXPECT_EQ(json["settings"]["gpu"], gpu::describe(DeviceKind::cuda));
  EXPECT_THAT(names_of(json["metrics"]), ElementsAre("ssim", "ssimulacra2", "vmaf"));
  expect_error({"bench", "-m", "integer-ssim", "--device", "cuda"}, 1,
      "integer-ssim runs on the CPU alone; leave out --device cuda:0");
}

TEST_F(Bench, WritesAFile) {
  const Outcome outcome =
      bench({"-m", "mse", "--size=8x8", "--seconds=0", "--format=json", "-o", "speed.json"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(Json::parse(text_of("speed.json"))["metrics"].contains("mse"));
  expect_error(
      {"bench", "-o", "none/speed.json"}, 1, "-o none/speed.json: none is not a directory");
}

TEST_F(Bench, WrongUsageIsStatusTwo) {
  for (const char* size : {"64", "0x4", "4x-4", "4x", "1x2x3x4", "4X4"}) {
    expect_error({"bench", "--size", size}, 2,
        std::string("--size is \"") + size +
            "\"; it must be WxH, such as 1920x1080, or WxHxD of volumes");
  }
  for (const char* size : {"16385x16384", "1048577x1", "1024x1024x257"}) {
    expect_error({"bench", "--size", size}, 2,
        std::string("--size is ") + size +
            "; it must be at most 1048576 per side and 268435456 in all");
  }
  for (const char* seconds : {"-1", "61", "x", "inf", "nan"}) {
    expect_error({"bench", "--seconds", seconds}, 2,
        std::string("--seconds is \"") + seconds + "\"; it must be a number from 0 to 60");
  }
  expect_error({"bench", "--format", "csv"}, 2, "--format is \"csv\"; it must be table or json");
  expect_error(
      {"bench", "--threads", "0"}, 2, "--threads is \"0\"; it must be a number from 1 to 1024");
  expect_error({"bench", "--device", "npu"}, 2,
      "--device is \"npu\"; it must be auto, cpu, gpu, cuda, cuda:N, vulkan or vulkan:N");
  expect_error({"bench", "-m", "sim"}, 2,
      "-m sim: there is no metric \"sim\"; did you mean ssim? (--list-metrics shows all)");
  expect_error({"bench", "-m", "mse", "-m", "mse"}, 2, "-m mse is given twice");
  expect_error({"bench", "a.png"}, 2, "bench takes no arguments; \"a.png\" is one too many");
  expect_error({"bench", "--size"}, 2, "--size has no value; write --size WxH[xD]");
}

}  // namespace
}  // namespace similis::cli
