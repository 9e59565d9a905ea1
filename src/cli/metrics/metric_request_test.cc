// SPDX-License-Identifier: Apache-2.0
#include "src/cli/metrics/metric_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/cli/metrics/metrics.h"
#include "tests/refusal.h"

namespace similis::cli {
namespace {

using test::expect_refusal;

std::vector<std::string> names(const std::vector<std::string>& texts) {
  std::vector<std::string> result;
  for (const Measure& measure : requested_measures(texts)) result.push_back(measure.name);
  return result;
}

std::string settings(const std::string& text) {
  std::string result;
  for (const auto& [name, value] : requested_measures({text})[0].settings(255)) {
    result += name + "=" + value + " ";
  }
  return result;
}

TEST(MetricRequest, AMeasureIsNamedAsItsMetricUnlessThatIsAskedForTwice) {
  using testing::ElementsAre;
  EXPECT_THAT(names({"psnr", "ssim=sigma=2"}), ElementsAre("psnr", "ssim"));
  EXPECT_THAT(names({"ssim", "ssim=sigma=2", "mse"}), ElementsAre("ssim", "ssim=sigma=2", "mse"));
}

TEST(MetricRequest, SettingsAreReadByTheirTypes) {
  EXPECT_EQ(settings("ssim"),
      "window_size=11 window=\"gaussian\" sigma=1.5 k1=0.01 k2=0.03 sample_covariance=false "
      "padding=\"valid\" data_range=255 ");
  EXPECT_EQ(settings("ssim=window=box:window_size=7:sample_covariance=true"),
      "window_size=7 window=\"box\" sigma=1.5 k1=0.01 k2=0.03 sample_covariance=true "
      "padding=\"valid\" data_range=255 ");
  EXPECT_EQ(settings("ssim=window_size=7,9:sigma=1e-1:k1=0:padding=same:data_range=1000"),
      "window_size=[7,9] window=\"gaussian\" sigma=0.1 k1=0 k2=0.03 sample_covariance=false "
      "padding=\"same\" data_range=1000 ");
  EXPECT_EQ(settings("ms-ssim=weights=.5,.25,.25:downsample=piq"),
      "window_size=11 sigma=1.5 k1=0.01 k2=0.03 padding=\"valid\" weights=[0.5,0.25,0.25] "
      "downsample=\"piq\" data_range=255 ");
  EXPECT_EQ(settings("mse"), "");
}

TEST(MetricRequest, SaysWhatIsWrong) {
  const auto refuse = [](const std::string& text, const std::string& sentence) {
    expect_refusal([&] { requested_measures({text}); }, sentence);
  };
  refuse("sssim",
      "-m sssim: there is no metric \"sssim\"; did you mean ssim? (--list-metrics shows all)");
  refuse("nonsense", "-m nonsense: there is no metric \"nonsense\" (--list-metrics shows all)");
  refuse("", "-m : there is no metric \"\" (--list-metrics shows all)");
  refuse("psnr,ssim", "-m psnr,ssim: there is no metric \"psnr,ssim\" (--list-metrics shows all)");
  refuse("ssim=blur=7", "-m ssim=blur=7: ssim has no option \"blur\"");
  refuse("ssim=windowsize=7",
      "-m ssim=windowsize=7: ssim has no option \"windowsize\"; did you mean window_size?");
  refuse("mse=k=1", "-m mse=k=1: mse has no option \"k\"");
  refuse("ssim=", "-m ssim=: ssim has no option \"\"");
  refuse("ssim=k1=1:", "-m ssim=k1=1:: ssim has no option \"\"");
  refuse("ssim=k1", "-m ssim=k1: k1 has no value; it must be a number of 0 or more");
  refuse("ssim=k1=1:k1=2", "-m ssim=k1=1:k1=2: k1 is given twice");
  refuse("ssim=k1=-1", "-m ssim=k1=-1: k1 is \"-1\"; it must be a number of 0 or more");
  refuse("ssim=k1=1x", "-m ssim=k1=1x: k1 is \"1x\"; it must be a number of 0 or more");
  refuse("ssim=k1=nan", "-m ssim=k1=nan: k1 is \"nan\"; it must be a number of 0 or more");
  refuse("ssim=k1=inf", "-m ssim=k1=inf: k1 is \"inf\"; it must be a number of 0 or more");
  refuse("ssim=window_size=8",
      "-m ssim=window_size=8: window_size is \"8\"; it must be an odd number from 1 to 65535, or "
      "one per axis: y,x or z,y,x");
  refuse("ssim=window_size=65537",
      "-m ssim=window_size=65537: window_size is \"65537\"; it must be an odd number from 1 to "
      "65535, or one per axis: y,x or z,y,x");
  refuse("ssim=window_size=3,5,7,9",
      "-m ssim=window_size=3,5,7,9: window_size is \"3,5,7,9\"; it must be an odd number from 1 to "
      "65535, or one per axis: y,x or z,y,x");
  refuse("ssim=window_size=99999999999",
      "-m ssim=window_size=99999999999: window_size is \"99999999999\"; it must be an odd number "
      "from 1 to 65535, or one per axis: y,x or z,y,x");
  refuse("ssim=padding=zero",
      "-m ssim=padding=zero: padding is \"zero\"; it must be valid, same, reflect, replicate or "
      "renormalize");
  refuse("ms-ssim=weights=1,,2",
      "-m ms-ssim=weights=1,,2: weights is \"1,,2\"; it must be a number of 0 or more, or several "
      "separated by commas");
  expect_refusal([] { requested_measures({"ssim", "psnr", "ssim"}); }, "-m ssim is given twice");
}

TEST(MetricRequest, AMetricWithOptionsIsOnItsOwn) {
  EXPECT_THAT(split_metrics({"psnr,ms_ssim", "ssim=window_size=7,9", "ms-ssim=weights=1,2"}),
      testing::ElementsAre("psnr", "ms-ssim", "ssim=window_size=7,9", "ms-ssim=weights=1,2"));
  const auto refuse = [](const std::string& text, const std::string& sentence) {
    expect_refusal([&] { requested_measures(split_metrics({text})); }, "-m " + text + sentence);
  };
  refuse("vmaf,vmaf=model=vmaf_v0.6.1neg",
      ": a metric with options takes a -m of its own; write -m vmaf -m vmaf=model=vmaf_v0.6.1neg");
  refuse("mse,nonsense,ssim=window_size=7,9,ms_ssim=k1=0",
      ": a metric with options takes a -m of its own; write -m mse -m nonsense -m "
      "ssim=window_size=7,9 -m ms_ssim=k1=0");
  refuse("ssim=window_size=7,9,psnr",
      ": window_size is \"7,9,psnr\"; it must be an odd number from 1 to 65535, or one per axis: "
      "y,x or z,y,x; write -m ssim=window_size=7,9 -m psnr");
  refuse("psnr,,ssim", ": a metric's name is empty");
}

TEST(MapRequest, TakesTheOptionsOfTheMeasureItNames) {
  const auto sigma = [](std::string_view text, const std::vector<std::string>& texts) {
    return requested_map(text, texts).measure.settings(255)[2].second;
  };
  EXPECT_EQ(sigma("ssim=a.png", {}), "1.5");
  EXPECT_EQ(sigma("ssim=a.png", {"psnr"}), "1.5");
  EXPECT_EQ(sigma("ssim=a.png", {"psnr", "ssim=sigma=2"}), "2");
  EXPECT_EQ(sigma("ssim=a.png", {"ssim", "ssim=sigma=2"}), "1.5");
  EXPECT_EQ(sigma("ssim=sigma=2=a.png", {"ssim", "ssim=sigma=2"}), "2");
  EXPECT_EQ(requested_map("ssim=sigma=2=a.png", {"ssim", "ssim=sigma=2"}).path, "a.png");
  EXPECT_EQ(requested_map("ssim=x=y/a b.png", {}).path, "x=y/a b.png");
}

TEST(MapRequest, SaysWhatIsWrong) {
  const auto refuse = [](const std::string& text, const std::string& sentence,
                          const std::vector<std::string>& texts = {}) {
    expect_refusal([&] { requested_map(text, texts); }, sentence);
  };
  refuse("psnr=a.png",
      "--map psnr=a.png: psnr has no map; metrics with a map: mse, mae, ssim, ms-ssim, lncc, "
      "ssimulacra2");
  refuse("ssin=a.png",
      "--map ssin=a.png: there is no metric \"ssin\"; did you mean ssim? (--list-metrics shows "
      "all)");
  refuse("ssim", "--map ssim: FILE is missing; write ssim=FILE.png");
  expect_refusal([&] { require_map_file(requested_map("ssim=a.jpg", {})); },
      "--map ssim=a.jpg: a map is a PNG file, or its values in .pfm, .tiff, .npy or .nii.gz; write "
      "ssim=FILE.png");
  refuse("ssim=a.png",
      "--map ssim=a.png: there are several ssim; choose one, as in --map "
      "ssim=sigma=1=FILE.png",
      {"ssim=sigma=1", "ssim=sigma=2"});
}

TEST(Metrics, EveryOneIsDescribedAndItsDefaultsCanBeTyped) {
  for (const Metric& metric : metrics()) {
    EXPECT_FALSE(metric.description.empty()) << metric.name;
    EXPECT_THAT(describe_metrics(), testing::HasSubstr(metric.name + "  " + metric.description));
    Settings typed;
    for (const MetricOption& option : metric.options) {
      EXPECT_FALSE(option.description.empty()) << metric.name << " " << option.name;
      if (!option.default_value.empty()) typed.emplace_back(option.name, option.default_value);
    }
    EXPECT_EQ(metric.configure(typed).settings(1), metric.configure({}).settings(1));
  }
}

}  // namespace
}  // namespace similis::cli
