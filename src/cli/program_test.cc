// SPDX-License-Identifier: Apache-2.0
// The program end to end: what it prints, writes and returns.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "similis/similis.hpp"
#include "src/cli/terminal/json_text.h"
#include "src/cli/test_program.h"
#include "src/gpu/device.h"
#include "src/media/picture/decode.h"
#include "src/media/picture/formats/png_writer.h"

namespace similis::cli {
namespace {

using media::Image;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class Program : public ProgramTest {
 protected:
  Program() {
    write("a.png", reference_picture());
    write("b.png", distorted_picture());
  }
};

TEST_F(Program, ScoresTwoPicturesAsTheLibraryDoes) {
  const Json document =
      json({"a.png", "b.png", "-m", "ssim", "-m", "mse", "-m", "mae", "-m", "psnr"});
  const Image x = reference_picture(), y = distorted_picture();
  const Extents shape = {1, 3, 48, 64}, strides = {0, 1, 64 * 3, 3};
  const double expected = item(ssim(TensorView(x.samples8.data(), shape, strides, DType::u8),
      TensorView(y.samples8.data(), shape, strides, DType::u8)));
  const Json& frame = document["frames"][0];
  EXPECT_EQ(frame["frame"], 0);
  EXPECT_NEAR(frame["ssim"].get<double>(), expected, 1e-6);
  EXPECT_DOUBLE_EQ(frame["mse"].get<double>(), 3);  // a third of the samples off by 3
  EXPECT_DOUBLE_EQ(frame["mae"].get<double>(), 1);
  EXPECT_DOUBLE_EQ(frame["psnr"].get<double>(), 10 * std::log10(255 * 255 / 3.0));
  EXPECT_EQ(document["metrics"]["mse"]["mean"], 3.0);
  EXPECT_EQ(document["reference"], "a.png");
  EXPECT_EQ(document["distorted"], "b.png");
  EXPECT_EQ(document["device"], "cpu");
}

// On a GPU where there is one, which scores as the CPU does; else in words why not.
TEST_F(Program, ScoresOnTheDeviceThatIsAskedFor) {
  if (gpu::device_count(DeviceKind::cuda) == 0) {
    expect_error({"compare", "a.png", "b.png", "--device", "cuda"}, 1,
        "--device cuda: " + gpu::describe(DeviceKind::cuda));
    return;
  }
  const Json on_cpu = json({"a.png", "b.png", "-m", "ssim", "-m", "psnr", "--device", "cpu"});
  const Json on_gpu = json({"a.png", "b.png", "-m", "ssim", "-m", "psnr", "--device", "cuda"});
  EXPECT_EQ(on_gpu["device"], "cuda:0");
  for (const char* metric : {"ssim", "psnr"}) {
    const double expected = on_cpu["frames"][0][metric].get<double>();
    EXPECT_NEAR(on_gpu["frames"][0][metric].get<double>(), expected, 1e-5 * expected) << metric;
  }
  EXPECT_EQ(compare({"a.png", "b.png", "--device", "cuda", "--map", "ssim=map.png"}).status, 0);
  EXPECT_TRUE(exists("map.png"));
}

TEST_F(Program, RefusesDevicesThatThisMachineDoesNotHave) {
  for (const DeviceKind kind : gpu::kKinds) {
    const std::string device = std::string(name(kind)) + ":9";
    const bool has_some = gpu::device_count(kind) > 0;
    expect_error({"compare", "a.png", "b.png", "--device", device}, 1,
        "--device " + device + (has_some ? " does not exist: " : ": ") + gpu::describe(kind));
  }
  if (gpu::device_count(DeviceKind::cuda) + gpu::device_count(DeviceKind::vulkan) == 0) {
    expect_error({"compare", "a.png", "b.png", "--device", "gpu"}, 1,
        "--device gpu: " + gpu::describe(DeviceKind::cuda) + "; " +
            gpu::describe(DeviceKind::vulkan));
  }
}

TEST_F(Program, TellsHowToLeaveTheDeviceOfTheEnvironment) {
  if (gpu::device_count(DeviceKind::vulkan) == 0) GTEST_SKIP() << "there is no Vulkan device";
  setenv("SIMILIS_BACKEND", "vulkan", 1);
  expect_error({"compare", "a.png", "b.png", "-m", "lncc"}, 1,
      "b.png: lncc has no kernels for Vulkan; unset SIMILIS_BACKEND");
  unsetenv("SIMILIS_BACKEND");
}

TEST_F(Program, PrintsATableAndCsv) {
  EXPECT_EQ(compare({"a.png", "b.png", "-m", "mse", "-m", "mae"}).out,
      "metric     value\n"
      "mse     3.000000\n"
      "mae     1.000000\n");
  EXPECT_EQ(compare({"a.png", "b.png", "-m", "mse", "-m", "mae", "--format=csv"}).out,
      "frame,mse,mae\n0,3,1\n");
}

TEST_F(Program, TheSamePictureIsPerfect) {
  const Json frame = json({"a.png", "a.png", "-m", "psnr", "-m", "ssim", "-m", "mse"})["frames"][0];
  EXPECT_TRUE(frame["psnr"].is_null());
  EXPECT_EQ(frame["ssim"], 1);
  EXPECT_EQ(frame["mse"], 0);
}

TEST_F(Program, MutualInformationIsThatOfTheLibrary) {
  const Json frame = json({"a.png", "b.png", "-m", "mi", "-m", "mi=num_bins=16:kernel=gaussian",
      "-m", "nmi=kernel=delta"})["frames"][0];
  const Image x = reference_picture(), y = distorted_picture();
  const Extents shape = {1, 3, 48, 64}, strides = {0, 1, 64 * 3, 3};
  const auto expected = [&](const MutualInformationOptions& options) {
    return item(mutual_information(TensorView(x.samples8.data(), shape, strides, DType::u8),
        TensorView(y.samples8.data(), shape, strides, DType::u8), options));
  };
  EXPECT_NEAR(frame["mi"].get<double>(), expected({}), 1e-6);
  EXPECT_NEAR(frame["mi=num_bins=16:kernel=gaussian"].get<double>(),
      expected({.num_bins = 16, .kernel = ParzenKernel::gaussian}), 1e-6);
  EXPECT_NEAR(frame["nmi"].get<double>(),
      expected({.kernel = ParzenKernel::delta, .normalized = true}), 1e-6);
}

TEST_F(Program, CorrelationsAreThoseOfTheLibrary) {
  const Json frame = json({"a.png", "b.png", "-m", "ncc", "-m", "lncc", "-m",
      "lncc=window_size=5:window=gaussian:sigma=2:padding=valid:signed=true"})["frames"][0];
  const Image x = reference_picture(), y = distorted_picture();
  const Extents shape = {1, 3, 48, 64}, strides = {0, 1, 64 * 3, 3};
  const TensorView reference(x.samples8.data(), shape, strides, DType::u8);
  const TensorView distorted(y.samples8.data(), shape, strides, DType::u8);
  EXPECT_NEAR(frame["ncc"].get<double>(), item(ncc(reference, distorted)), 1e-9);
  EXPECT_NEAR(frame["lncc"].get<double>(), item(lncc(reference, distorted)), 1e-6);
  const LnccOptions options{.window_size = 5,
      .window = WindowShape::gaussian,
      .sigma = 2,
      .padding = Padding::valid,
      .is_signed = true};
  EXPECT_NEAR(
      frame["lncc=window_size=5:window=gaussian:sigma=2:padding=valid:signed=true"].get<double>(),
      item(lncc(reference, distorted, options)), 1e-6);
}

TEST_F(Program, OptionsReachTheMetric) {
  const Json document = json({"a.png", "b.png", "-m", "ssim", "-m", "ssim=window_size=7:sigma=1.2",
      "-m", "psnr=data_range=100"});
  const Json& frame = document["frames"][0];
  EXPECT_NE(frame["ssim"], frame["ssim=window_size=7:sigma=1.2"]);
  EXPECT_NEAR(frame["psnr"].get<double>(), 10 * std::log10(100 * 100 / 3.0), 1e-9);
  EXPECT_EQ(document["settings"]["metrics"]["ssim=window_size=7:sigma=1.2"]["window_size"], 7);
  EXPECT_EQ(document["settings"]["metrics"]["ssim"]["data_range"], 255);
}

TEST_F(Program, DefaultsLeaveOutWhatAPictureIsTooSmallFor) {
  const Outcome outcome = compare({"a.png", "b.png", "--format=csv"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.out, StartsWith("frame,psnr,ssim\n"));
  EXPECT_THAT(outcome.err, StartsWith("similis: note: b.png: ms-ssim skipped: "));
  const Outcome asked = compare({"a.png", "b.png", "-m", "ms-ssim"});
  EXPECT_EQ(asked.status, 1);
  EXPECT_THAT(asked.err, StartsWith("similis: b.png: ms_ssim: "));
  EXPECT_EQ(asked.out, "");

  write("large_a.png", reference_picture(180, 170));
  write("large_b.png", distorted_picture(180, 170));
  const Outcome large = compare({"large_a.png", "large_b.png", "--format=csv"});
  EXPECT_THAT(large.out, StartsWith("frame,psnr,ssim,ms-ssim\n0,"));
  EXPECT_EQ(large.err, "");
}

TEST_F(Program, ErrorsAreOneLineThatNamesTheFile) {
  write("small.png", reference_picture(20, 30));
  Image clear = distorted_picture(64, 48, 4);
  write("clear.png", clear);
  write_text("text.png", "no picture");
  std::filesystem::create_directory(folder_.file("folder"));
  expect_error({"compare", "a.png", "small.png"}, 1,
      "a.png is 64×48 but small.png is 20×30; sizes must match; --resize lanczos makes the "
      "distorted as large as the reference");
  expect_error(
      {"compare", "a.png", "none.png"}, 1, "cannot read none.png: No such file or directory");
  expect_error({"compare", "a.png", "clear.png"}, 1,
      "clear.png has transparent pixels; give the colour behind them with --background COLOR");
  expect_error({"compare", "folder", "none"}, 1, "cannot read none: No such file or directory");
  expect_error({"compare", "a.png", "b.png", "-o", "none/x.json"}, 1,
      "-o none/x.json: none is not a directory");
  const Outcome broken = compare({"a.png", "text.png"});
  EXPECT_EQ(broken.status, 1);
  EXPECT_THAT(broken.err, StartsWith("similis: cannot read text.png: "));
  EXPECT_EQ(std::count(broken.err.begin(), broken.err.end(), '\n'), 1);
}

TEST_F(Program, AConversionOfColoursIsToldAndRecorded) {
  Image linear = distorted_picture();
  linear.color.gamma = 1.0;
  write("linear.png", linear);
  const Outcome outcome = compare({"a.png", "linear.png", "-m", "mse", "--format", "json"});
  EXPECT_EQ(outcome.status, 0);
  const std::string sentence = "distorted converted from gamma 1 to the reference's sRGB";
  EXPECT_EQ(outcome.err, "similis: note: linear.png: " + sentence + "\n");
  EXPECT_EQ(Json::parse(outcome.out)["settings"]["differences"]["color"], sentence);
}

TEST_F(Program, WrongUsageIsStatusTwo) {
  std::filesystem::create_directory(folder_.file("folder"));
  expect_error({}, 2, "a command is missing; similis --help shows them");
  expect_error(
      {"compar", "a.png", "b.png"}, 2, "there is no command \"compar\"; did you mean compare?");
  expect_error({"compare"}, 2, "REF is missing; similis compare --help shows how to call it");
  expect_error(
      {"compare", "a.png"}, 2, "DIST is missing; similis compare --help shows how to call it");
  expect_error({"compare", "a.png", ""}, 2, "DIST is empty");
  expect_error(
      {"compare", "a.png", "b.png", "-o", ""}, 2, "--output is empty; write --output FILE");
  expect_error({"compare", "a.png", "b.png", "b.png"}, 2, "b.png is given twice");
  expect_error({"compare", "a.png", "b.png", "c.png", "--map", "ssim=x.png"}, 2,
      "--map ssim=x.png: x.png must be a folder, as there are several maps; write ssim=maps/");
  expect_error({"compare", "a.png", "b.png", "--fromat", "json"}, 2,
      "there is no option --fromat; did you mean --format?");
  expect_error({"compare", "a.png", "b.png", "--format"}, 2,
      "--format has no value; write --format table|json|jsonl|csv|xml");
  expect_error({"compare", "a.png", "b.png", "--format=csv", "--format=csv"}, 2,
      "--format is given 2 times");
  expect_error({"compare", "a.png", "b.png", "--format", "yaml"}, 2,
      "--format is \"yaml\"; it must be table, json, jsonl, csv or xml");
  expect_error({"compare", "a.png", "b.png", "--threads", "0"}, 2,
      "--threads is \"0\"; it must be a number from 1 to 1024");
  expect_error({"compare", "a.png", "b.png", "--device", "npu"}, 2,
      "--device is \"npu\"; it must be auto, cpu, gpu, cuda, cuda:N, vulkan or vulkan:N");
  expect_error({"compare", "a.png", "b.png", "-m", "sim"}, 2,
      "-m sim: there is no metric \"sim\"; did you mean ssim? (--list-metrics shows all)");
  expect_error({"compare", "a.png", "folder"}, 2,
      "folder is a directory but a.png is not; compare two files or two directories");
  expect_error({"compare", "folder", "folder", "--map", "ssim=x.png"}, 2,
      "--map ssim=x.png: x.png must be a folder, as there are several maps; write ssim=maps/");
  expect_error({"compare", "-", "-"}, 2, "only one of REF and DIST can be standard input");
  expect_error(
      {"compare", "a.png", "b.png", "-o", "./b.png"}, 2, "-o ./b.png is one of the inputs");
  expect_error(
      {"compare", "a.png", "b.png", "--map", "ssim=a.png"}, 2, "--map a.png is one of the inputs");
  expect_error({"completion", "tcsh"}, 2,
      "there is no completion for \"tcsh\"; it must be bash, zsh or fish");
}

TEST_F(Program, AControlCharacterInANameStaysOnItsLine) {
  expect_error({"compare", "a.png", "x\n\x1b[2J.png"}, 1,
      "cannot read x\\n\\x1b[2J.png: No such file or directory");
}

TEST_F(Program, NamesAreTakenLiterally) {
  for (const char* name : {"star*[1]?.png", "-x.png", "[a,b]", "info", "compare", " ", "é.png"}) {
    write(name, distorted_picture());
    const Outcome outcome = compare({"-m", "mse", "--format=csv", "--", "a.png", name});
    EXPECT_EQ(outcome.out, "frame,mse\n0,3\n") << name << ": " << outcome.err;
  }
  write("star1.png", reference_picture());
  EXPECT_EQ(
      compare({"star*[1]?.png", "a.png", "-m", "mse", "--format=csv"}).out, "frame,mse\n0,3\n");
  EXPECT_EQ(compare({"-m", "mse", "--", "a.png", "b.png", "-x.png"}).status, 0);
}

TEST_F(Program, StandardInputIsEitherSide) {
  const media::Buffer bytes = media::content(folder_.file("b.png"));
  EXPECT_EQ(compare({"a.png", "-", "-m", "mse", "--format=csv"}, bytes).out, "frame,mse\n0,3\n");
  EXPECT_EQ(compare({"-", "a.png", "-m", "mse", "--format=csv"}, bytes).out, "frame,mse\n0,3\n");
  const Outcome empty = compare({"a.png", "-"});
  EXPECT_EQ(empty.status, 1);
  EXPECT_THAT(empty.err, StartsWith("similis: cannot read standard input: "));
}

TEST_F(Program, ResultsAreTheSameForAnyNumberOfThreads) {
  write("large_a.png", reference_picture(300, 201));
  write("large_b.png", distorted_picture(300, 201));
  std::filesystem::create_directory(folder_.file("r"));
  std::filesystem::create_directory(folder_.file("d"));
  for (const char* name : {"1.png", "2.png", "3.png"}) {
    write(std::string("r/") + name, reference_picture(200, 181));
    write(std::string("d/") + name, distorted_picture(200, 181));
  }
  for (const auto& [reference, distorted] :
      {std::pair{"large_a.png", "large_b.png"}, std::pair{"r", "d"}}) {
    std::vector<std::string> documents;
    for (const char* threads : {"1", "2", "7"}) {
      const Outcome outcome =
          compare({reference, distorted, "--threads", threads, "--format", "json"});
      EXPECT_EQ(outcome.status, 0) << outcome.err;
      documents.push_back(outcome.out);
    }
    EXPECT_EQ(documents[0], documents[1]);
    EXPECT_EQ(documents[0], documents[2]);
  }
}

TEST_F(Program, OutputIsWrittenWholeOrNotAtAll) {
  write_text("scores.json", "older");
  EXPECT_EQ(compare({"a.png", "none.png", "-o", "scores.json"}).status, 1);
  EXPECT_EQ(text_of("scores.json"), "older");
  EXPECT_FALSE(exists("scores.json.partial"));
  const Outcome outcome =
      compare({"a.png", "b.png", "-m", "mse", "--format=csv", "-o", "scores.json"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(text_of("scores.json"), "frame,mse\n0,3\n");
  EXPECT_THAT(files(), testing::ElementsAre("a.png", "b.png", "scores.json"));
}

class Directories : public Program {
 protected:
  Directories() {
    std::filesystem::create_directory(folder_.file("r"));
    std::filesystem::create_directory(folder_.file("d"));
    for (const char* name : {"b", "a"}) {
      write(std::string("r/") + name + ".png", reference_picture());
      write(std::string("d/") + name + ".png", distorted_picture());
    }
  }
};

TEST_F(Directories, PairsAreSortedAndPooled) {
  write("d/b.png", reference_picture());
  write_text("r/left.txt", "");
  const Outcome outcome = compare({"r", "d", "-m", "mse", "--format", "json"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err, "similis: note: r/left.txt has no match in d\n");
  const Json document = Json::parse(outcome.out);
  EXPECT_EQ(document["pairs"][0]["reference"], "r/a.png");
  EXPECT_EQ(document["pairs"][0]["metrics"]["mse"]["mean"], 3);
  EXPECT_EQ(document["pairs"][1]["distorted"], "d/b.png");
  EXPECT_EQ(document["pairs"][1]["frames"][0]["mse"], 0);
  EXPECT_EQ(document["metrics"]["mse"]["mean"], 1.5);
  EXPECT_EQ(document["unmatched"], Json::parse(R"([{"path": "r/left.txt", "side": "reference"}])"));
  EXPECT_EQ(compare({"r", "d/", "-m", "mse"}).out,
      "distorted       mse\n"
      "a.png      3.000000\n"
      "b.png      0.000000\n"
      "\n"
      "mean       1.500000\n"
      "min        0.000000\n"
      "max        3.000000\n");
}

TEST_F(Directories, ABrokenFileIsNamedAndTheOthersAreScored) {
  write_text("d/a.png", "broken");
  const Outcome outcome = compare({"r", "d", "-m", "mse", "--format", "json"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, StartsWith("similis: cannot read d/a.png: "));
  const Json document = Json::parse(outcome.out);
  ASSERT_EQ(document["pairs"].size(), 1u);
  EXPECT_EQ(document["pairs"][0]["distorted"], "d/b.png");
  EXPECT_THAT(document["error"].get<std::string>(), StartsWith("cannot read d/a.png: "));
}

TEST_F(Directories, AFailingRunLeavesTheOlderFileAndWhatItHasBesideIt) {
  write_text("d/a.png", "broken");
  write_text("scores.csv", "older");
  const Outcome outcome = compare({"r", "d", "-m", "mse", "--format=csv", "-o", "scores.csv"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(text_of("scores.csv"), "older");
  EXPECT_EQ(text_of("scores.csv.partial"), "reference,distorted,frame,mse\nr/b.png,d/b.png,0,3\n");
  EXPECT_THAT(
      outcome.err, EndsWith("similis: note: the scores so far are in scores.csv.partial\n"));
}

TEST_F(Directories, NothingThatMatchesIsAnError) {
  std::filesystem::create_directory(folder_.file("empty"));
  const Outcome outcome = compare({"r", "empty", "--format", "json"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err,
      "similis: note: r/a.png has no match in empty\n"
      "similis: note: r/b.png has no match in empty\n"
      "similis: no file in empty has a match in r\n");
  EXPECT_EQ(Json::parse(outcome.out)["unmatched"].size(), 2u);
}

TEST_F(Program, AMapShowsWhereTheScoreIsLost) {
  Image patched = reference_picture();
  for (std::int64_t y = 20; y < 30; ++y) {
    for (std::int64_t i = 40 * 3; i < 50 * 3; ++i) {
      patched.samples8[static_cast<std::size_t>(y * 64 * 3 + i)] = (y + i) % 2 == 0 ? 255 : 0;
    }
  }
  write("patched.png", patched);
  EXPECT_EQ(compare({"a.png", "patched.png", "--map", "ssim=map.png", "-m", "psnr"}).status, 0);
  const Image map = media::read_image(folder_.file("map.png"));
  EXPECT_EQ(map.channels, 3);
  const auto brightness = [&](std::int64_t x, std::int64_t y) {
    const auto at = static_cast<std::size_t>((y * map.width + x) * 3);
    return map.samples8[at] + map.samples8[at + 1] + map.samples8[at + 2];
  };
  EXPECT_GT(brightness(45, 25), 500);  // in the patch
  EXPECT_LT(brightness(10, 10), 60);   // far from it
  EXPECT_LT(brightness(0, 47), 60);    // the map reaches the corners
  EXPECT_EQ(brightness(64, 0), 3 * 255);
}

TEST_F(Program, SaysWhatItIs) {
  EXPECT_EQ(run({"--version"}).out, "similis " SIMILIS_VERSION "\n");
  const Outcome info = run({"info"});
  EXPECT_EQ(info.status, 0);
  for (const char* word : {SIMILIS_VERSION, "SIMD in use", "threads", "GPU", "PNG", "JPEG"}) {
    EXPECT_THAT(info.out, HasSubstr(word));
  }
  for (const std::vector<std::string>& help : {std::vector<std::string>{"--help"},
           {"compare", "--help"}, {"compare", "--list-metrics"}, {"bench", "--help"},
           {"bench", "--list-metrics"}, {"info", "--help"}, {"completion", "-h"}}) {
    const Outcome outcome = run(help);
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_GT(outcome.out.size(), 100u);
  }
}

TEST_F(Program, TellsOfOneDevice) {
  const Outcome cpu = run({"info", "--device", "cpu"});
  EXPECT_EQ(cpu.status, 0);
  EXPECT_THAT(cpu.out, StartsWith("SIMD in use"));
  EXPECT_THAT(cpu.out, testing::Not(HasSubstr("GPU")));
  EXPECT_THAT(cpu.out, testing::Not(HasSubstr("PNG")));
  for (const DeviceKind kind : gpu::kKinds) {
    for (int index = 0; index < gpu::device_count(kind); ++index) {
      const std::string device = fmt::format("{}:{}", name(kind), index);
      const std::string text = gpu::examine(Device{kind, index});
      EXPECT_THAT(text, StartsWith(device + " is "));
      EXPECT_THAT(gpu::examine(kind), HasSubstr(text));
      EXPECT_EQ(run({"info", "--device", device}).out, "GPU  " + text + "\n");
    }
    const Outcome absent = run({"info", "--device", fmt::format("{}:1000", name(kind))});
    EXPECT_EQ(absent.status, 1);
    EXPECT_THAT(absent.err, HasSubstr(gpu::describe(kind)));
  }
  const Outcome report = run({"info", "--report", "--device", "cpu"});
  EXPECT_EQ(report.status, 2);
  EXPECT_EQ(report.err, "similis: --device is cpu; with --report it must be vulkan or vulkan:N\n");
}

TEST_F(Program, AFullDiskIsAnError) {
  const Outcome outcome = spawn(
      folder_, {"sh", "-c", std::string(SIMILIS_PROGRAM) + " compare a.png b.png > /dev/full"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(
      outcome.err, EndsWith("similis: cannot write standard output: No space left on device\n"));
}

TEST_F(Program, BashCompletesCommandsOptionsAndValues) {
  const auto complete = [&](const std::string& words, int at) {
    const std::string script =
        "eval \"$(" SIMILIS_PROGRAM " completion bash)\"; COMP_WORDS=(similis " + words +
        "); COMP_CWORD=" + std::to_string(at) + "; _similis; echo \"${COMPREPLY[*]}\"";
    const Outcome outcome = spawn(folder_, {"bash", "-c", script});
    EXPECT_EQ(outcome.err, "");
    return outcome.out;
  };
  EXPECT_EQ(complete("co", 1), "compare completion\n");
  EXPECT_EQ(complete("b", 1), "bench\n");
  EXPECT_EQ(complete("compare --fo", 2), "--format\n");
  EXPECT_EQ(complete("compare --format j", 3), "json jsonl\n");
  EXPECT_EQ(complete("compare --format = c", 4), "csv\n");
  EXPECT_EQ(complete("compare --format =", 3), "table json jsonl csv xml\n");
  EXPECT_EQ(complete("compare a b -m ms", 5), "mse ms-ssim\n");
  EXPECT_EQ(complete("compare a b --map ''", 5), "mse mae ssim ms-ssim lncc ssimulacra2\n");
  EXPECT_EQ(complete("bench --format ''", 3), "table json\n");
  EXPECT_EQ(complete("bench -m ms", 3), "mse ms-ssim\n");
  EXPECT_EQ(complete("completion z", 2), "zsh\n");
  EXPECT_EQ(complete("compare ''", 2), "\n");  // files, which bash finds itself
  EXPECT_EQ(complete("compare --threads ''", 3), "\n");
}

}  // namespace
}  // namespace similis::cli
