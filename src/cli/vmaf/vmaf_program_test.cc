// SPDX-License-Identifier: Apache-2.0
// `similis vmaf` end to end. The documents' letters are vmaf_output_test.cc's; the numbers are
// those of libvmaf's own runs, where ../shared/data (or SIMILIS_TEST_DATA) has them.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "similis/version.h"
#include "src/cli/test_program.h"
#include "src/gpu/device.h"
#include "src/media/video/test_video.h"

namespace similis::cli {
namespace {

using media::Buffer;
using media::VideoFormat;
using testing::HasSubstr;
using testing::StartsWith;

class Vmaf : public ProgramTest {
 protected:
  // Flat frames, so that PSNR says which frame met which: x is `first`, then one more each.
  static Buffer ramp(int frames, int first) {
    Buffer bytes;
    media::append(bytes, "YUV4MPEG2 W16 H16 F25:1 Ip C420jpeg\n");
    for (int i = 0; i < frames; ++i) {
      media::append(bytes, "FRAME\n");
      media::append(bytes, Buffer(16 * 16 * 3 / 2, static_cast<std::uint8_t>(first + i)));
    }
    return bytes;
  }
  Outcome vmaf(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "vmaf");
    return run(arguments);
  }
  // Frame numbers and differences, which follow from psnr_y.
  std::vector<std::pair<int, int>> met(const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"-r", "a.y4m", "-d", "b.y4m", "-n", "-q", "--feature",
        "psnr=enable_chroma=false", "--csv", "--precision", "max", "-o", "out.csv"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = vmaf(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    std::istringstream lines(text_of("out.csv"));
    std::string line;
    std::getline(lines, line);
    EXPECT_EQ(line, "Frame,psnr_y,");
    std::vector<std::pair<int, int>> frames;
    while (std::getline(lines, line)) {
      const double psnr = std::stod(line.substr(line.find(',') + 1));
      const double difference = psnr == 60 ? 0 : 255 / std::pow(10, psnr / 20);
      frames.emplace_back(std::stoi(line), static_cast<int>(std::lround(difference)));
    }
    return frames;
  }
};

TEST_F(Vmaf, WalksFramesAsVmafDoes) {
  using Frames = std::vector<std::pair<int, int>>;
  write_bytes("a.y4m", ramp(6, 0));
  write_bytes("b.y4m", ramp(6, 10));
  EXPECT_EQ(met({}), (Frames{{0, 10}, {1, 10}, {2, 10}, {3, 10}, {4, 10}, {5, 10}}));
  EXPECT_EQ(met({"--subsample", "4"}), (Frames{{0, 10}, {4, 10}}));
  EXPECT_EQ(met({"--frame_cnt", "2"}), (Frames{{0, 10}, {1, 10}}));
  EXPECT_EQ(met({"--frame_skip_ref", "4"}), (Frames{{0, 6}, {1, 6}}));
  EXPECT_EQ(met({"--frame_skip_dist", "3", "--subsample", "2"}), (Frames{{0, 13}, {2, 13}}));
  EXPECT_EQ(met({"--frame_skip_ref", "1", "--frame_skip_dist", "2", "--frame_cnt", "3"}),
      (Frames{{0, 11}, {1, 11}, {2, 11}}));
}

TEST_F(Vmaf, AShorterVideoIsToldAndNoError) {
  write_bytes("a.y4m", ramp(3, 0));
  write_bytes("b.y4m", ramp(2, 10));
  const std::vector<std::string> common = {"-n", "--feature", "psnr", "--csv", "-o", "out.csv"};
  for (const auto& [reference, distorted] : {std::pair{"a.y4m", "b.y4m"}, {"b.y4m", "a.y4m"}}) {
    std::vector<std::string> arguments = {"-r", reference, "-d", distorted};
    arguments.insert(arguments.end(), common.begin(), common.end());
    const Outcome outcome = vmaf(arguments);
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.err, "\n\"b.y4m\" ended before \"a.y4m\".\n");
    EXPECT_THAT(text_of("out.csv"), StartsWith("Frame,psnr_y,psnr_cb,psnr_cr,\n0,28.1"));
    arguments.insert(arguments.end(), {"--frame_cnt", "2"});
    EXPECT_EQ(vmaf(arguments).err, "") << "it was not reached";
  }
}

TEST_F(Vmaf, NoFrameIsAnError) {
  write_bytes("a.y4m", ramp(2, 0));
  const Outcome outcome = vmaf({"-r", "a.y4m", "-d", "a.y4m", "-n", "--feature", "psnr",
      "--frame_skip_ref", "2", "-o", "out.xml"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err,
      "\n\"a.y4m\" ended before \"a.y4m\".\n"
      "similis: no frame to compare in a.y4m and a.y4m\n");
  EXPECT_FALSE(exists("out.xml"));
}

TEST_F(Vmaf, AVideoCutInAFrameLeavesNoFile) {
  Buffer cut = ramp(3, 0);
  write_bytes("a.y4m", cut);
  cut.resize(cut.size() - 1);
  write_bytes("b.y4m", cut);
  const Outcome outcome =
      vmaf({"-r", "a.y4m", "-d", "b.y4m", "-n", "--feature", "psnr", "-o", "out.xml"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, StartsWith("similis: cannot read b.y4m: it is cut off in frame 2"));
  EXPECT_THAT(files(), testing::ElementsAre("a.y4m", "b.y4m"));
}

TEST_F(Vmaf, WritesTheFormatAskedFor) {
  write_bytes("a.y4m", ramp(2, 0));
  const auto document = [&](const std::vector<std::string>& format) {
    std::vector<std::string> arguments = {
        "-r", "a.y4m", "-d", "a.y4m", "-n", "--feature", "psnr", "-o", "out"};
    arguments.insert(arguments.end(), format.begin(), format.end());
    EXPECT_EQ(vmaf(arguments).status, 0);
    return text_of("out");
  };
  EXPECT_THAT(document({}), StartsWith("<VMAF version=\"similis " SIMILIS_VERSION "\">\n  <params "
                                       "qualityWidth=\"16\" qualityHeight=\"16\" />\n"));
  EXPECT_THAT(document({"--xml"}), HasSubstr("<frame frameNum=\"1\" psnr_y=\"60.000000\" "));
  EXPECT_THAT(document({"--json"}), HasSubstr("        \"psnr_y\": 60.000000,\n"));
  EXPECT_EQ(document({"--sub"}),
      "{0}{1}frame: 0|psnr_y: 60.000000|psnr_cb: 60.000000|psnr_cr: 60.000000|\n"
      "{1}{2}frame: 1|psnr_y: 60.000000|psnr_cb: 60.000000|psnr_cr: 60.000000|\n");
  EXPECT_EQ(vmaf({"-r", "a.y4m", "-d", "a.y4m", "-n", "--feature", "ssim", "--csv", "-o", "-"}).out,
      "Frame,ssim,\n0,1.000000,\n1,1.000000,\n");
}

TEST_F(Vmaf, WrongUsageIsStatusTwo) {
  write_bytes("a.y4m", ramp(1, 0));
  const auto expect_usage_error = [&](std::vector<std::string> more, const std::string& error) {
    more.insert(more.begin(), {"vmaf", "-r", "a.y4m", "-d", "a.y4m"});
    expect_error(more, 2, error);
  };
  expect_usage_error({"-m", "version=vmaf_v9"},
      "--model version=vmaf_v9: there is no model vmaf_v9; those there are: vmaf_v0.6.1, "
      "vmaf_v0.6.1neg, vmaf_4k_v0.6.1, vmaf_4k_v0.6.1neg, vmaf_b_v0.6.3");
  expect_usage_error({"-m", "version=vmaf_float_v0.6.1"},
      "--model version=vmaf_float_v0.6.1: there is no model vmaf_float_v0.6.1: features in floats "
      "are not here; those there are: vmaf_v0.6.1, vmaf_v0.6.1neg, vmaf_4k_v0.6.1, "
      "vmaf_4k_v0.6.1neg, vmaf_b_v0.6.3");
  expect_usage_error({"-m", "version=vmaf_v0.6.1", "-m", "version=vmaf_v0.6.1neg"},
      "--model version=vmaf_v0.6.1neg: another model is named vmaf too; give one a name with "
      "name=");
  expect_usage_error(
      {"-m", "name=a"}, "--model name=a: a model is given as version=NAME or as path=FILE");
  expect_usage_error({"-m", "version=vmaf_v0.6.1:phone"},
      "--model version=vmaf_v0.6.1:phone: there is no part \"phone\"; those there are: version, "
      "path, name, disable_clip, enable_transform, FEATURE.OPTION");
  expect_usage_error({"-m", "version=vmaf_v0.6.1:vif.vif_enhn_gain_limit=0.5"},
      "--model version=vmaf_v0.6.1:vif.vif_enhn_gain_limit=0.5: vif_enhn_gain_limit is \"0.5\"; "
      "it must be a number from 1 to 100");
  expect_usage_error({"-n", "--feature", "cambi9"},
      "--feature cambi9: there is no feature \"cambi9\"; the features are ssim, float_ssim, "
      "float_ms_ssim, psnr, psnr_hvs, ciede, adm, cambi, motion, vif");
  expect_usage_error({"-n", "--feature", "adm=adm_csf_mode=1"},
      "--feature adm=adm_csf_mode=1: adm: adm_csf_mode is 1; it must be 0 or 2");
  expect_usage_error({"-n", "--feature", "adm=adm_norm_view_dist=1"},
      "--feature adm=adm_norm_view_dist=1: adm: adm_norm_view_dist is 1 and "
      "adm_ref_display_height is 1080; their product must be at least 3240");
  expect_usage_error({"-n", "--feature", "vif=vif_skip=1"},
      "--feature vif=vif_skip=1: vif has no option \"vif_skip\" here");
  expect_usage_error({"-n", "--feature", "psnr=peak=1"},
      "--feature psnr=peak=1: psnr has no option \"peak\" here");
  expect_usage_error({"-n", "--feature", "float_ssim=scale=11"},
      "--feature float_ssim=scale=11: scale is \"11\"; it must be a whole number from 0 to 10");
  expect_usage_error({"-n", "--feature", "float_ssim=enable_lcs"},
      "--feature float_ssim=enable_lcs: enable_lcs is \"\"; it must be true or false");
  expect_usage_error({"-n", "--feature", "float_ssim=scale=1", "--feature", "float_ssim"},
      "--feature float_ssim: float_ssim is given with other options too");
  expect_usage_error({"-n", "-w", "16"},
      "raw video needs all of --width, --height, --pixel_format and --bitdepth");
  expect_usage_error({"-n", "-w", "16", "-h", "16", "-p", "411", "-b", "8"},
      "--pixel_format is \"411\"; it must be 420, 422, 444 or 400");
  expect_usage_error({"-n", "-w", "16", "-h", "16", "-p", "420", "-b", "9"},
      "--bitdepth is \"9\"; it must be 8, 10, 12 or 16");
  expect_usage_error({"-n", "--subsample", "-1"}, "--subsample is \"-1\"; it must be a number");
  expect_usage_error(
      {"-n", "--json", "--csv"}, "only one of --xml, --json, --csv and --sub can be given");
  expect_error(
      {"vmaf", "-n"}, 2, "--reference is missing; similis vmaf --help shows how to call it");
}

TEST_F(Vmaf, FramesTooSmallForAFeatureAreAnError) {
  write_bytes("a.y4m", ramp(1, 0));
  const Outcome outcome = vmaf(
      {"-r", "a.y4m", "-d", "a.y4m", "-n", "--feature", "float_ms_ssim", "--json", "-o", "out"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("float_ms_ssim: "));
  EXPECT_FALSE(exists("out"));
}

TEST_F(Vmaf, FramesTooSmallForAModelAreAnError) {
  write_bytes("a.y4m", ramp(2, 0));
  const Outcome model = vmaf({"-r", "a.y4m", "-d", "a.y4m", "-o", "out"});
  EXPECT_EQ(model.status, 1);
  EXPECT_EQ(model.err, "similis: adm: frames are 16×16; width and height must be at least 33\n");
  EXPECT_FALSE(exists("out"));
  EXPECT_EQ(vmaf({"-r", "a.y4m", "-d", "a.y4m", "-n", "--feature", "vif", "-o", "out"}).status, 0);
}

TEST_F(Vmaf, PsnrHasLibvmafsOptions) {
  write_bytes("a.y4m", ramp(3, 0));
  write_bytes("b.y4m", ramp(3, 10));
  const auto document = [&](const std::string& distorted, const std::string& feature,
                            const char* format) {
    const Outcome outcome = vmaf({"-r", "a.y4m", "-d", distorted, "-n", "--feature", feature,
        "--subsample", "2", format, "-o", "out"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return text_of("out");
  };
  EXPECT_THAT(document("b.y4m", "psnr=enable_mse=true:enable_chroma=false", "--csv"),
      StartsWith("Frame,psnr_y,mse_y,\n0,28.130804,100.000000,\n2,"));
  EXPECT_THAT(document("b.y4m", "psnr=enable_apsnr=true", "--json"),
      HasSubstr("\"aggregate_metrics\": {\n    \"apsnr_y\": 28.130804,\n    \"apsnr_cb\": "
                "28.130804,\n    \"apsnr_cr\": 28.130804\n  }\n}\n"));
  EXPECT_THAT(document("b.y4m", "psnr=enable_apsnr=true", "--xml"),
      HasSubstr("  <aggregate_metrics apsnr_y=\"28.130804\" apsnr_cb=\"28.130804\" "
                "apsnr_cr=\"28.130804\" />\n"));
  // Equal frames: of 256 luma samples 10·log10(255²·256/0.5) = 75.2, rounded up.
  EXPECT_THAT(document("a.y4m", "psnr=min_sse=0.5", "--csv"),
      HasSubstr("\n0,76.000000,70.000000,70.000000,\n"));
  // The aggregate is of all three frames, shown or not: 10·log10(255²·768·2), rounded up.
  EXPECT_THAT(document("a.y4m", "psnr=enable_apsnr=true", "--json"),
      HasSubstr("\"apsnr_y\": 80.000000,\n    \"apsnr_cb\": 74.000000,"));
  const VideoFormat ten{.width = 8, .height = 8, .pixels = *media::pixel_format("gray10le")};
  Buffer dark, light;
  for (int i = 0; i < 64; ++i) {
    media::append(dark, std::string("\0\0", 2));
    media::append(light, std::string("\4\0", 2));
  }
  write_bytes("dark.yuv", dark);
  write_bytes("light.yuv", light);
  ASSERT_EQ(vmaf({"-r", "dark.yuv", "-d", "light.yuv", "-w", "8", "-h", "8", "-p", "400", "-b",
                     "10", "-n", "--feature", "psnr=reduced_hbd_peak=true", "--csv", "-o", "out"})
                .status,
      0);
  EXPECT_EQ(text_of("out"), "Frame,psnr_y,\n0,48.130804,\n") << "that of 1 in 8 bits";
}

// ab-av1 looks in ffmpeg's log for "VMAF score: " and takes what follows, trimmed, as a number; who
// reads the JSON takes pooled_metrics.
TEST_F(Vmaf, ProgramsThatReadFfmpegsLogFindTheScore) {
  const VideoFormat format{.width = 40, .height = 36, .pixels = *media::pixel_format("yuv420p")};
  write_bytes("a.y4m", media::y4m_noise(format, "", 3, 1));
  write_bytes("b.y4m", media::y4m_noise(format, "", 3, 2));
  const std::vector<std::string> arguments = {"-r", "a.y4m", "-d", "b.y4m", "-m",
      "version=vmaf_v0.6.1neg", "-m", "version=vmaf_v0.6.1:name=other", "--json", "-o", "out"};
  const Outcome outcome = vmaf(arguments);
  const std::string mark = "VMAF score: ";
  const std::size_t at = outcome.err.find(mark);
  ASSERT_NE(at, std::string::npos) << outcome.err;
  std::size_t read = 0;
  const std::string rest = outcome.err.substr(at + mark.size());
  const double score = std::stod(rest, &read);
  EXPECT_EQ(rest.find_first_not_of(" \n", read), std::string::npos) << "nothing else follows";
  const Json pooled = Json::parse(text_of("out"))["pooled_metrics"]["vmaf"];
  EXPECT_NEAR(score, pooled["mean"].get<double>(), 1e-6);
  for (const char* statistic : {"min", "max", "harmonic_mean"}) {
    EXPECT_TRUE(pooled[statistic].is_number()) << statistic;
  }
  std::vector<std::string> quiet = arguments;
  quiet.emplace_back("-q");
  EXPECT_EQ(vmaf(quiet).err, "");
}

TEST_F(Vmaf, TestConditionsAreSetsOfModelsAndFeatures) {
  const VideoFormat format{.width = 220, .height = 180, .pixels = *media::pixel_format("yuv420p")};
  write_bytes("a.y4m", media::y4m_noise(format, "", 1, 1));
  write_bytes("b.y4m", media::y4m_noise(format, "", 1, 2));
  const auto header = [&](const std::vector<std::string>& conditions) {
    std::vector<std::string> arguments = {"-r", "a.y4m", "-d", "b.y4m", "--csv", "-o", "out"};
    arguments.insert(arguments.end(), conditions.begin(), conditions.end());
    const Outcome outcome = vmaf(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const std::string text = text_of("out");
    return text.substr(0, text.find('\n'));
  };
  const std::string planes = "psnr_y,psnr_cb,psnr_cr,";
  EXPECT_THAT(header({"--aom_ctc", "v1.0"}),
      testing::EndsWith(planes + "ciede2000,float_ssim,float_ms_ssim,psnr_hvs_y,psnr_hvs_cb,"
                                 "psnr_hvs_cr,psnr_hvs,integer_motion2,integer_motion3,vmaf,"
                                 "vmaf_neg,"));
  EXPECT_THAT(header({"--aom_ctc", "v7.0"}), HasSubstr("psnr_hvs,cambi,integer_motion2,"));
  EXPECT_THAT(header({"--nflx_ctc", "v1.0"}),
      testing::EndsWith(
          planes + "float_ssim,cambi,integer_motion2,integer_motion3,vmaf,vmaf_neg,"));
  expect_error({"vmaf", "-r", "a.y4m", "-d", "b.y4m", "--aom_ctc", "v8.0"}, 2,
      "--aom_ctc is \"v8.0\"; it must be v1.0, v2.0, … or v7.0");
  expect_error({"vmaf", "-r", "a.y4m", "-d", "b.y4m", "--nflx_ctc", "v2.0"}, 2,
      "--nflx_ctc is \"v2.0\"; it must be v1.0");
}

TEST_F(Vmaf, FeaturesOfColourRefuseWhatTheyDoNotTake) {
  const auto refusal = [&](const char* pixels, std::int64_t width, const char* feature) {
    const VideoFormat format{.width = width, .height = 40, .pixels = *media::pixel_format(pixels)};
    write_bytes("a.yuv", media::noise_frame(format, 1));
    const std::string chroma = format.pixels.color_planes == 1 ? "400" : "420";
    const Outcome outcome = vmaf(
        {"-r", "a.yuv", "-d", "a.yuv", "-w", std::to_string(width), "-h", "40", "-p", chroma, "-b",
            std::to_string(format.pixels.bit_depth), "-n", "--feature", feature, "-o", "out"});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_FALSE(exists("out"));
    return outcome.err;
  };
  const std::string grey = "takes the three planes of colour video; grey video has one\n";
  EXPECT_EQ(refusal("gray", 40, "psnr_hvs"), "similis: psnr_hvs " + grey);
  EXPECT_EQ(refusal("gray", 40, "ciede"), "similis: ciede " + grey);
  EXPECT_EQ(refusal("yuv420p16le", 40, "psnr_hvs"),
      "similis: psnr_hvs: samples have 16 bits; it takes up to 12\n");
  EXPECT_EQ(refusal("yuv420p", 14, "psnr_hvs"),
      "similis: psnr_hvs: a plane is 7×20; width and height must be at least 8\n");
  EXPECT_EQ(refusal("yuv420p", 40, "cambi"),
      "similis: cambi: frames are 40×40; width or height must be at least 216\n");
}

TEST_F(Vmaf, TakesMasksAndOddSizes) {
  Buffer bytes;
  media::append(bytes, "YUV4MPEG2 W37 H35 F25:1 Ip C420jpeg\nFRAME\n");
  media::append(bytes, Buffer(37 * 35 + 2 * 19 * 18, 100));
  write_bytes("a.y4m", bytes);
  const Outcome outcome = vmaf({"-r", "a.y4m", "-d", "a.y4m", "--cpumask", "3", "--gpumask", "1",
      "--json", "-o", "out.json"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(text_of("out.json"), HasSubstr("\"integer_adm2\": 1.000000,"));
}

TEST_F(Vmaf, RefusesDepthsThatLibvmafHasNot) {
  Buffer bytes;
  media::append(bytes, "YUV4MPEG2 W40 H40 F25:1 Ip C420p9\nFRAME\n");
  media::append(bytes, Buffer(40 * 40 * 3, 0));
  write_bytes("a.y4m", bytes);
  const Outcome outcome = vmaf({"-r", "a.y4m", "-d", "a.y4m", "-o", "out"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err, "similis: adm: bit_depth is 9; it must be 8, 10, 12 or 16\n");
}

TEST_F(Vmaf, AFileThatIsNoModelIsAnError) {
  write_bytes("a.y4m", ramp(1, 0));
  const auto expect_no_model = [&](const std::string& json, const std::string& error) {
    write_text("m.json", json);
    const Outcome outcome = vmaf({"-r", "a.y4m", "-d", "a.y4m", "-m", "path=m.json", "-o", "out"});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err, StartsWith("similis: m.json: " + error));
    EXPECT_FALSE(exists("out"));
  };
  expect_no_model("[", "it is not a VMAF model: ");
  expect_no_model("{}", "it is not a VMAF model: it has no model_dict");
  expect_no_model(R"({"model_dict": {"feature_names": ["VMAF_feature_adm2_score"]}})",
      "its feature VMAF_feature_adm2_score is not here; adm, motion and vif in integers are");
  const Outcome missing = vmaf({"-r", "a.y4m", "-d", "a.y4m", "-m", "path=none.json", "-o", "out"});
  EXPECT_EQ(missing.status, 1);
  EXPECT_EQ(missing.err, "similis: cannot read none.json: there is no such file\n");
}

// The fixtures; empty if there are none.
std::filesystem::path fixtures() {
  const char* folder = std::getenv("SIMILIS_TEST_DATA");
  const std::filesystem::path data = folder ? folder : SIMILIS_SOURCE_DIR "/../shared/data";
  return std::filesystem::exists(data / "golden.json") ? data : std::filesystem::path();
}

class RecordedVmaf : public Vmaf {
 protected:
  void SetUp() override {
    data_ = fixtures();
    if (data_.empty()) GTEST_SKIP() << "no ../shared/data, and SIMILIS_TEST_DATA names no folder";
    std::ifstream stream(data_ / "golden_vmaf.json");
    golden_ = Json::parse(stream);
  }
  std::vector<std::string> arguments_for(
      const Json& clip, std::vector<std::string> arguments) const {
    for (const auto& [option, key] : {std::pair{"-w", "width"}, {"-h", "height"}, {"-b", "depth"},
             {"-r", "reference"}, {"-d", "distorted"}, {"-p", "chroma"}}) {
      const Json& value = clip[key];
      const bool is_file = value.is_string() && key[0] != 'c';
      const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
      arguments.insert(
          arguments.end(), {option, is_file ? (data_ / "video" / text).string() : text});
    }
    return arguments;
  }
  // Every recorded case, the features of src/vmaf and the models: all 64 bits.
  void expect_recorded_numbers(const char* device) const {
    int compared = 0;
    for (const auto& [name, clip] : golden_["cases"].items()) {
      std::vector<std::string> arguments = {
          "--json", "--precision", "max", "-o", "out.json", "--device", device};
      for (const Json& argument : clip["arguments"]) arguments.push_back(argument);
      const Outcome outcome = vmaf(arguments_for(clip, arguments));
      ASSERT_EQ(outcome.status, 0) << outcome.err;
      const Json document = Json::parse(text_of("out.json"));
      ASSERT_EQ(document["frames"].size(), clip["frames"].size()) << name;
      for (const auto& [column, values] : clip["columns"].items()) {
        for (std::size_t i = 0; i < values.size(); ++i, ++compared) {
          const double number = document["frames"][i]["metrics"][column].get<double>();
          const double expected = values[i].get<double>();
          EXPECT_NEAR(number, expected, column == "ciede2000" ? 1e-7 : 0)
              << name << " " << column << " frame " << i;
          EXPECT_EQ(document["frames"][i]["frameNum"], clip["frames"][i]) << name;
        }
      }
    }
    EXPECT_GT(compared, 1850);
  }
  std::filesystem::path data_;
  Json golden_;
};

TEST_F(RecordedVmaf, OnAGpuModelsAndFeaturesAreLibvmafs) {
  if (gpu::device_count(DeviceKind::cuda) == 0) GTEST_SKIP() << gpu::describe(DeviceKind::cuda);
  expect_recorded_numbers("cuda");
}

TEST_F(RecordedVmaf, ModelsAndFeaturesAreLibvmafs) {
  expect_recorded_numbers("cpu");
  std::string expected = golden_["document"]["json"];
  const Json& clip = golden_["cases"][golden_["document"]["case"].get<std::string>()];
  ASSERT_EQ(vmaf(arguments_for(clip, {"--json", "-o", "out.json"})).status, 0);
  const std::string text = text_of("out.json");
  const auto without_head = [](const std::string& document) {
    return document.substr(document.find("\"frames\""));
  };
  EXPECT_EQ(without_head(text), without_head(expected));
}

TEST_F(Vmaf, NumbersAreLibvmafs) {
  const std::filesystem::path data = fixtures();
  if (data.empty()) GTEST_SKIP() << "no ../shared/data, and SIMILIS_TEST_DATA names no folder";
  std::ifstream stream(data / "golden.json");
  const Json golden = Json::parse(stream);
  int compared = 0;
  for (const Json& clip : golden["video"]) {
    for (const auto& [feature, expected] : clip.items()) {
      const bool is_ssim = feature == "ssim";
      if (!is_ssim && (!expected.is_object() || expected.contains("error"))) continue;
      const Json columns = is_ssim ? Json{{"ssim", expected}} : expected;
      const auto text = [&](const char* key) { return Json(clip[key]).dump(); };
      const Outcome outcome = vmaf({"-r", data / "video" / clip["ref"].get<std::string>(), "-d",
          data / "video" / clip["dist"].get<std::string>(), "-w", text("width"), "-h",
          text("height"), "-p",
          clip["chroma"].is_string() ? clip["chroma"].get<std::string>() : text("chroma"), "-b",
          text("depth"), "-n", "--feature", feature, "--json", "-o", "out.json", "--precision",
          "max"});
      ASSERT_EQ(outcome.status, 0) << outcome.err;
      const Json document = Json::parse(text_of("out.json"));
      for (const auto& [column, values] : columns.items()) {
        for (std::size_t i = 0; i < values.size(); ++i, ++compared) {
          const double value = document["frames"][i]["metrics"][column].get<double>();
          if (is_ssim) {
            EXPECT_EQ(value, values[i].get<double>()) << clip["ref"] << " frame " << i;
          } else {
            EXPECT_NEAR(value, values[i].get<double>(), 5.1e-7)
                << clip["ref"] << " " << column << " frame " << i;
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 50);
}

}  // namespace
}  // namespace similis::cli
