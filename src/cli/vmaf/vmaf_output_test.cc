// SPDX-License-Identifier: Apache-2.0
// The documents, letter by letter, as vmaf 3.2 writes them for these numbers.
#include "src/cli/vmaf/vmaf_output.h"

#include <gtest/gtest.h>

#include <limits>

namespace similis::cli {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

VmafResults two_frames() {
  return {.version = "1",
      .width = 16,
      .height = 8,
      .frames_per_second = 12.345,
      .columns = {"float_ssim", "psnr_y"},
      .frames = {{0, {0.25, 30}}, {2, {0.75, 40.0000001}}}};
}

TEST(VmafNumber, HasSixDigitsOrSixteen) {
  EXPECT_EQ(vmaf_number(0), "0.000000");
  EXPECT_EQ(vmaf_number(1), "1.000000");
  EXPECT_EQ(vmaf_number(-0.7609201), "-0.760920");
  EXPECT_EQ(vmaf_number(0.000001), "0.000001");
  EXPECT_EQ(vmaf_number(9e-7), "0.0000009000000000");
  EXPECT_EQ(vmaf_number(40.0000001), "40.0000001000000012");
  EXPECT_EQ(vmaf_number(kInfinity), "inf");
}

TEST(VmafOutput, Json) {
  EXPECT_EQ(to_vmaf_json(two_frames()), R"({
  "version": "1",
  "fps": 12.35,
  "frames": [
    {
      "frameNum": 0,
      "metrics": {
        "float_ssim": 0.250000,
        "psnr_y": 30.000000
      }
    },
    {
      "frameNum": 2,
      "metrics": {
        "float_ssim": 0.750000,
        "psnr_y": 40.0000001000000012
      }
    }
  ],
  "pooled_metrics": {
    "float_ssim": {
      "min": 0.250000,
      "max": 0.750000,
      "mean": 0.500000,
      "harmonic_mean": 0.458333
    },
    "psnr_y": {
      "min": 30.000000,
      "max": 40.0000001000000012,
      "mean": 35.0000000499999970,
      "harmonic_mean": 34.305556
    }
  },
  "aggregate_metrics": {
  }
}
)");
}

TEST(VmafOutput, JsonHasNullForWhatIsNotFinite) {
  VmafResults results = two_frames();
  results.frames = {{0, {kInfinity, 30}}};
  const std::string text = to_vmaf_json(results);
  EXPECT_NE(text.find("        \"float_ssim\": null,        \"psnr_y\": 30.000000\n      }"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("      \"mean\": null,\n"), std::string::npos) << text;
}

TEST(VmafOutput, JsonOfNothing) {
  EXPECT_EQ(to_vmaf_json({.version = "1", .frames_per_second = kInfinity}), R"({
  "version": "1",
  "fps": null,
  "frames": [
  ],
  "pooled_metrics": {
  },
  "aggregate_metrics": {
  }
}
)");
}

TEST(VmafOutput, Xml) {
  EXPECT_EQ(to_vmaf_xml(two_frames()), R"(<VMAF version="1">
  <params qualityWidth="16" qualityHeight="8" />
  <fyi fps="12.35" />
  <frames>
    <frame frameNum="0" float_ssim="0.250000" psnr_y="30.000000" />
    <frame frameNum="2" float_ssim="0.750000" psnr_y="40.0000001000000012" />
  </frames>
  <pooled_metrics>
    <metric name="float_ssim" min="0.250000" max="0.750000" mean="0.500000" harmonic_mean="0.458333" />
    <metric name="psnr_y" min="30.000000" max="40.0000001000000012" mean="35.0000000499999970" harmonic_mean="34.305556" />
  </pooled_metrics>
  <aggregate_metrics />
</VMAF>
)");
}

TEST(VmafOutput, CsvAndSubtitles) {
  EXPECT_EQ(to_vmaf_csv(two_frames()),
      "Frame,float_ssim,psnr_y,\n"
      "0,0.250000,30.000000,\n"
      "2,0.750000,40.0000001000000012,\n");
  EXPECT_EQ(to_vmaf_subtitles(two_frames()),
      "{0}{1}frame: 0|float_ssim: 0.250000|psnr_y: 30.000000|\n"
      "{2}{3}frame: 2|float_ssim: 0.750000|psnr_y: 40.0000001000000012|\n");
}

TEST(VmafOutput, MaximalPrecisionReadsBack) {
  VmafResults results = two_frames();
  results.is_shortest = true;
  EXPECT_EQ(to_vmaf_csv(results), "Frame,float_ssim,psnr_y,\n0,0.25,30,\n2,0.75,40.0000001,\n");
}

}  // namespace
}  // namespace similis::cli
