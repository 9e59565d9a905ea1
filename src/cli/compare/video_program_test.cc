// SPDX-License-Identifier: Apache-2.0
// `similis compare` on video, end to end.
#include <cmath>

#include "similis/similis.hpp"
#include "src/cli/test_program.h"
#include "src/gpu/device.h"
#include "src/media/io/test_cost.h"
#include "src/media/picture/decode.h"
#include "src/media/picture/reader.h"
#include "src/media/video/test_video.h"

namespace similis::cli {
namespace {

using media::Buffer;
using media::VideoFormat;
using media::VideoFrame;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kNames = "frame,mse-y,mse-cb,mse-cr\n";

class VideoProgram : public ProgramTest {
 protected:
  static VideoFormat format(
      const char* pixels = "yuv420p", std::int64_t width = 36, std::int64_t height = 24) {
    return {.width = width, .height = height, .pixels = *media::pixel_format(pixels)};
  }
  // y4m of `frames` frames of one code value, which grows by `step` from frame to frame.
  static Buffer flat(int frames, int value, int step, const VideoFormat& video = format()) {
    Buffer bytes;
    media::append(bytes, "YUV4MPEG2 W" + std::to_string(video.width) + " H" +
                             std::to_string(video.height) + " C" + chroma_name(video.pixels) +
                             "\n");
    for (int i = 0; i < frames; ++i) {
      media::append(bytes, "FRAME\n");
      media::append(
          bytes, Buffer(video.frame_bytes(), static_cast<std::uint8_t>(value + i * step)));
    }
    return bytes;
  }
  std::string mse_csv(std::vector<std::string> arguments, const Buffer& input = {}) {
    arguments.insert(arguments.end(), {"-m", "mse", "--format=csv"});
    return compare(arguments, input).out;
  }
};

// On a Vulkan device where there is one, which has the CPU's bits; else in words why not.
TEST_F(VideoProgram, IsScoredThroughVulkanWithTheBitsOfTheCpu) {
  const VideoFormat video = format("yuv420p10le");
  write_bytes("a.yuv", media::noise_frame(video, 1));
  write_bytes("b.yuv", media::noise_frame(video, 2));
  std::vector<std::string> arguments = {
      "a.yuv", "b.yuv", "--size", "36x24", "--pix-fmt", "yuv420p10le", "-m", "integer-ssim"};
  const Json on_cpu = json(arguments);
  arguments.insert(arguments.end(), {"--device", "vulkan"});
  if (gpu::device_count(DeviceKind::vulkan) == 0) {
    const Outcome outcome = compare(arguments);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err, HasSubstr("--device vulkan: " + gpu::describe(DeviceKind::vulkan)));
    return;
  }
  const Json on_vulkan = json(arguments);
  EXPECT_EQ(on_vulkan["device"], "vulkan:0");
  EXPECT_EQ(on_vulkan["frames"][0]["integer-ssim"], on_cpu["frames"][0]["integer-ssim"]);
  EXPECT_THAT(compare({"a.yuv", "b.yuv", "--size", "36x24", "--pix-fmt", "yuv420p10le", "-m",
                          "float-ssim", "--device", "vulkan"})
                  .err,
      HasSubstr("float-ssim has no kernels for Vulkan; leave out --device vulkan:0"));
}

TEST_F(VideoProgram, IsScoredThroughVulkanNearTheCpusNumbers) {
  if (gpu::device_count(DeviceKind::vulkan) == 0) GTEST_SKIP() << gpu::describe(DeviceKind::vulkan);
  const VideoFormat video = format("yuv444p", 171, 165);
  write_bytes("a.yuv", media::noise_frame(video, 1));
  write_bytes("b.yuv", media::noise_frame(video, 2));
  std::vector<std::string> arguments = {"a.yuv", "b.yuv", "--size", "171x165", "--pix-fmt",
      "yuv444p", "-m", "ssim", "-m", "ms-ssim", "-m", "mse", "-m", "mae", "-m", "psnr"};
  const Json on_cpu = json(arguments)["frames"][0];
  arguments.insert(arguments.end(), {"--device", "vulkan"});
  const Json on_vulkan = json(arguments)["frames"][0];
  int numbers = 0;
  for (const auto& [name, value] : on_cpu.items()) {
    if (!value.is_number_float()) continue;
    ++numbers;
    const double expected = value;
    EXPECT_NEAR(on_vulkan[name], expected, 1e-6 * std::max(1.0, std::abs(expected))) << name;
  }
  EXPECT_EQ(numbers, 13);
}

// Several frames are under way at a time; with one thread there is one.
TEST_F(VideoProgram, FramesOfAVideoThroughVulkanHaveTheBitsOfTheCpu) {
  if (gpu::device_count(DeviceKind::vulkan) == 0) GTEST_SKIP() << gpu::describe(DeviceKind::vulkan);
  const VideoFormat video = format("yuv420p");
  Buffer a, b;
  for (std::uint32_t i = 0; i < 8; ++i) {
    for (Buffer* const side : {&a, &b}) {
      const Buffer frame = media::noise_frame(video, 2 * i + (side == &a ? 0 : 1));
      side->insert(side->end(), frame.begin(), frame.end());
    }
  }
  write_bytes("a.yuv", a);
  write_bytes("b.yuv", b);
  const auto frames = [&](const char* device, const char* threads) {
    return json({"a.yuv", "b.yuv", "--size", "36x24", "--pix-fmt", "yuv420p", "-m", "integer-ssim",
        "-m", "ssimulacra2", "--device", device, "--threads", threads})["frames"];
  };
  const Json expected = frames("cpu", "2");
  EXPECT_EQ(expected.size(), 8u);
  for (const char* threads : {"1", "2", "5"}) EXPECT_EQ(frames("vulkan", threads), expected);
}

TEST_F(VideoProgram, EachPlaneIsScoredAsTheLibraryDoes) {
  for (const char* pixels : {"yuv420p", "yuv422p10le", "yuv444p12le", "yuv420p16le", "gray"}) {
    const VideoFormat video = format(pixels);
    const VideoFrame x{.bytes = media::noise_frame(video, 1)};
    const VideoFrame y{.bytes = media::noise_frame(video, 2)};
    write_bytes("a.yuv", x.bytes);
    write_bytes("b.yuv", y.bytes);
    const Json document = json({"a.yuv", "b.yuv", "--size", "36x24", "--pix-fmt", pixels, "-m",
        "psnr", "-m", "mse", "-m", "mae", "-m", "ssim"});
    const double range = (1 << video.pixels.bit_depth) - 1;
    const Json& frame = document["frames"][0];
    for (int plane = 0; plane < video.pixels.color_planes; ++plane) {
      const char* name = plane == 0 ? "-y" : plane == 1 ? "-cb" : "-cr";
      const std::int64_t height = video.plane_height(plane), width = video.plane_width(plane);
      const Tensor a = allocate({1, 1, height, width}, DType::f64);
      const Tensor b = allocate({1, 1, height, width}, DType::f64);
      for (std::int64_t i = 0; i < height * width; ++i) {
        const auto sample = [&](const VideoFrame& from) -> double {
          const TensorView view = from.plane(video, plane);
          if (view.dtype == DType::u8) return static_cast<const std::uint8_t*>(view.data())[i];
          return static_cast<const std::uint16_t*>(view.data())[i];
        };
        a.elements<double>()[i] = sample(x);
        b.elements<double>()[i] = sample(y);
      }
      const auto value = [&](const std::string& metric) {
        return frame[metric + name].get<double>();
      };
      EXPECT_DOUBLE_EQ(value("mse"), item(mse(a, b))) << pixels << name;
      EXPECT_DOUBLE_EQ(value("mae"), item(mae(a, b))) << pixels << name;
      EXPECT_DOUBLE_EQ(value("psnr"), item(psnr(a, b, {.data_range = range}))) << pixels << name;
      EXPECT_NEAR(value("ssim"), item(ssim(a, b, {.data_range = range})), 1e-6) << pixels << name;
    }
    EXPECT_EQ(frame.size(), 1u + 4u * static_cast<std::size_t>(video.pixels.color_planes));
    EXPECT_EQ(document["settings"]["bit_depth"], video.pixels.bit_depth);
    EXPECT_EQ(document["settings"]["chroma"], chroma_name(video.pixels));
    EXPECT_EQ(document["settings"]["metrics"]["psnr"]["data_range"], range);
    EXPECT_EQ(document["settings"]["frames"], Json::parse(R"({"reference": 1, "distorted": 1})"));
  }
}

TEST_F(VideoProgram, FramesArePooled) {
  write_bytes("a.y4m", flat(5, 0, 0));
  write_bytes("b.y4m", flat(5, 1, 1));
  const Outcome outcome = compare({"a.y4m", "b.y4m", "-m", "mae", "--format", "json"});
  EXPECT_EQ(outcome.err, "");
  const Json document = Json::parse(outcome.out);
  ASSERT_EQ(document["frames"].size(), 5u);
  EXPECT_EQ(document["frames"][4]["frame"], 4);
  EXPECT_EQ(document["frames"][4]["mae-cr"], 5);
  const Json& statistics = document["metrics"]["mae-y"];
  EXPECT_EQ(statistics["mean"], 3);
  EXPECT_EQ(statistics["max"], 5);
  EXPECT_DOUBLE_EQ(statistics["stdev"].get<double>(), std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(statistics["p95"].get<double>(), 4.8);
  EXPECT_FALSE(statistics.contains("harmonic_mean")) << "an error has none";
  EXPECT_EQ(compare({"a.y4m", "b.y4m", "-m", "mae"}).out,
      "metric      mean       min  worst 5%    median       max     stdev  worst frame\n"
      "mae-y   3.000000  1.000000  4.800000  3.000000  5.000000  1.414214            4\n"
      "mae-cb  3.000000  1.000000  4.800000  3.000000  5.000000  1.414214            4\n"
      "mae-cr  3.000000  1.000000  4.800000  3.000000  5.000000  1.414214            4\n");
}

TEST_F(VideoProgram, MsSsimIsOfLuma) {
  const VideoFormat large = format("yuv420p", 192, 176);
  write_bytes("a.y4m", media::y4m_noise(large, "", 2, 1));
  write_bytes("b.y4m", media::y4m_noise(large, "", 2, 3));
  EXPECT_THAT(compare({"a.y4m", "b.y4m", "--format=csv"}).out,
      StartsWith("frame,psnr-y,psnr-cb,psnr-cr,ssim-y,ssim-cb,ssim-cr,ms-ssim\n0,"));
  write_bytes("c.y4m", media::y4m_noise(format(), "", 2, 1));
  const Outcome small = compare({"c.y4m", "c.y4m", "--format=csv"});
  EXPECT_EQ(small.status, 0);
  EXPECT_THAT(small.out, StartsWith("frame,psnr-y,psnr-cb,psnr-cr,ssim-y,ssim-cb,ssim-cr\n"));
  EXPECT_THAT(small.err, StartsWith("similis: note: c.y4m: ms-ssim skipped: "));
  EXPECT_EQ(std::count(small.err.begin(), small.err.end(), '\n'), 1);
  EXPECT_EQ(compare({"c.y4m", "c.y4m", "-m", "ms-ssim"}).status, 1);
}

TEST_F(VideoProgram, LibvmafsMeasuresAreOfLumaAsItIsStored) {
  const VideoFormat video = format("yuv420p10le", 192, 180);
  const VideoFrame x{.bytes = media::noise_frame(video, 1)};
  const VideoFrame y{.bytes = media::noise_frame(video, 2)};
  write_bytes("a.yuv", x.bytes);
  write_bytes("b.yuv", y.bytes);
  const Json document = json({"a.yuv", "b.yuv", "--size", "192x180", "--pix-fmt", "yuv420p10", "-m",
      "integer-ssim", "-m", "float-ssim=enable_lcs=true:scale=2", "-m", "float-ms-ssim"});
  const Json& frame = document["frames"][0];
  const TensorView a = x.plane(video, 0), b = y.plane(video, 0);
  EXPECT_EQ(frame["integer-ssim"], item(integer_ssim(a, b, {.bit_depth = 10})));
  EXPECT_EQ(frame["float-ssim"], item(float_ssim(a, b, {.bit_depth = 10, .scale = 2})));
  EXPECT_EQ(frame["float-ms-ssim"], item(float_ms_ssim(a, b, {.bit_depth = 10})));
  for (const char* part : {"float-ssim-l", "float-ssim-c", "float-ssim-s"}) {
    EXPECT_TRUE(frame[part].is_number()) << part;
  }
  EXPECT_EQ(frame.size(), 7u);
  EXPECT_EQ(document["settings"]["metrics"]["float-ssim"],
      Json::parse(R"({"scale": 2, "enable_lcs": true, "enable_db": false, "clip_db": false})"));
  write("a.png", reference_picture());
  expect_error({"compare", "a.png", "a.png", "-m", "integer-ssim"}, 1,
      "a.png: integer-ssim takes the luma of video; pictures and volumes have none");
}

TEST_F(VideoProgram, SelectsFrames) {
  write_bytes("a.y4m", flat(10, 0, 0));
  write_bytes("b.y4m", flat(10, 0, 1));
  EXPECT_EQ(mse_csv({"a.y4m", "b.y4m", "--frames", "2:9", "--every", "3"}),
      std::string(kNames) + "2,4,4,4\n5,25,25,25\n8,64,64,64\n");
  EXPECT_EQ(mse_csv({"a.y4m", "b.y4m", "--frames", "7:", "--offset", "2"}),
      std::string(kNames) + "7,81,81,81\n");
  EXPECT_EQ(mse_csv({"a.y4m", "b.y4m", "--frames", ":4", "--offset=-2"}),
      std::string(kNames) + "2,0,0,0\n3,1,1,1\n");
  const Json settings = json({"a.y4m", "b.y4m", "--frames", "2:4", "-m", "mse"})["settings"];
  EXPECT_EQ(
      settings["selection"], Json::parse(R"({"first": 2, "end": 4, "every": 1, "offset": 0})"));
  expect_error({"compare", "a.y4m", "b.y4m", "--frames", "50:60"}, 1,
      "a.y4m has 10 frames; --frames begins at frame 50");
}

TEST_F(VideoProgram, DifferentLengthsAreNotedAndTheCommonPartScored) {
  write_bytes("a.y4m", flat(5, 0, 0));
  write_bytes("b.y4m", flat(2, 1, 0));
  for (const auto& [reference, distorted, note] :
      {std::tuple{"a.y4m", "b.y4m", "b.y4m: has 2 frames but a.y4m has 5"},
          {"b.y4m", "a.y4m", "a.y4m: has 5 frames but b.y4m has 2"}}) {
    const Outcome outcome = compare({reference, distorted, "-m", "mse", "--format", "json"});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.err, std::string("similis: note: ") + note + "; scored 2 frames\n");
    const Json document = Json::parse(outcome.out);
    EXPECT_EQ(document["frames"].size(), 2u);
    EXPECT_EQ(document["settings"]["frames"]["reference"], *reference == 'a' ? 5 : 2);
    EXPECT_EQ(document["settings"]["frames"]["distorted"], *reference == 'a' ? 2 : 5);
  }
}

TEST_F(VideoProgram, WhatDiffersInKindIsRefused) {
  write_bytes("a.y4m", flat(1, 0, 0));
  write_bytes("size.y4m", flat(1, 0, 0, format("yuv420p", 36, 22)));
  write_bytes("chroma.y4m", flat(1, 0, 0, format("yuv422p")));
  write_bytes("depth.y4m", media::y4m_noise(format("yuv420p10le"), " C420p10", 1));
  write("a.png", reference_picture(36, 24));
  expect_error({"compare", "a.y4m", "size.y4m"}, 1,
      "a.y4m is 36×24 but size.y4m is 36×22; sizes must match; --resize lanczos makes the "
      "distorted "
      "as large as the reference");
  expect_error({"compare", "a.y4m", "chroma.y4m"}, 1,
      "a.y4m has chroma 420 but chroma.y4m has 422; chroma subsampling must match");
  expect_error({"compare", "a.y4m", "depth.y4m"}, 1,
      "a.y4m has 8 bits per sample but depth.y4m has 10; bit depths must match, or give --depth "
      "match");
  expect_error({"compare", "a.y4m", "a.png"}, 1,
      "a.y4m is a video but a.png is a picture; compare two pictures, two videos or two volumes");
  expect_error({"compare", "a.png", "a.png", "--every", "2"}, 1,
      "a.png is a picture; --frames, --every, --offset, --fps, --size and --pix-fmt are for video");
  for (const std::vector<std::string>& option : std::vector<std::vector<std::string>>{
           {"--depth", "match"}, {"--range", "match"}, {"--match-rate", "nearest"}}) {
    expect_error({"compare", "a.png", "a.png", option[0], option[1]}, 1,
        "a.png is a picture; --depth, --range and --match-rate are for video");
  }
}

TEST_F(VideoProgram, StandardInputIsEitherSide) {
  const Buffer a = flat(3, 0, 0), b = flat(3, 0, 2);
  write_bytes("a.y4m", a);
  write_bytes("b.y4m", b);
  const std::string expected = std::string(kNames) + "0,0,0,0\n1,4,4,4\n2,16,16,16\n";
  EXPECT_EQ(mse_csv({"a.y4m", "-"}, b), expected);
  EXPECT_EQ(mse_csv({"-", "b.y4m"}, a), expected);
  EXPECT_EQ(mse_csv({"-", "b.y4m", "--threads=1"}, a), expected);
}

TEST_F(VideoProgram, ABrokenVideoKeepsWhatWasScored) {
  write_bytes("a.y4m", flat(4, 0, 0));
  Buffer cut = flat(4, 1, 0);
  cut.resize(cut.size() - 1000);
  write_bytes("cut.y4m", cut);
  const std::string error =
      "cannot read cut.y4m: it is cut off in frame 3, after 296 of 1296 bytes";
  const Outcome outcome = compare({"a.y4m", "cut.y4m", "-m", "mse", "--format", "json"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err, "similis: " + error + "\n");
  const Json document = Json::parse(outcome.out);
  EXPECT_EQ(document["frames"].size(), 3u);
  EXPECT_EQ(document["metrics"]["mse-y"]["mean"], 1);
  EXPECT_EQ(document["error"], error);

  write_text("scores.csv", "older");
  const Outcome to_file =
      compare({"cut.y4m", "a.y4m", "-m", "mse", "--format=csv", "-o", "scores.csv"});
  EXPECT_EQ(to_file.status, 1);
  EXPECT_EQ(text_of("scores.csv"), "older");
  EXPECT_EQ(text_of("scores.csv.partial"), std::string(kNames) + "0,1,1,1\n1,1,1,1\n2,1,1,1\n");
  EXPECT_THAT(
      to_file.err, EndsWith("similis: note: the scores so far are in scores.csv.partial\n"));
}

TEST_F(VideoProgram, AWrongSizeIsAnError) {
  write_bytes("a.yuv", Buffer(36 * 24 * 3 / 2 * 2));
  const Outcome outcome =
      compare({"a.yuv", "a.yuv", "--size", "36x25", "--pix-fmt", "yuv420p", "-m", "mse"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("the file is cut off, or --size or --pix-fmt is wrong"));
}

TEST_F(VideoProgram, ResultsAreTheSameForAnyNumberOfThreads) {
  for (const char* pixels : {"yuv420p", "yuv420p10le"}) {
    const VideoFormat video = format(pixels, 194, 178);
    write_bytes("a.yuv", media::raw_noise(video, 4, 1));
    write_bytes("b.yuv", media::raw_noise(video, 4, 9));
    std::vector<std::string> documents;
    for (const char* threads : {"1", "2", "7"}) {
      const Outcome outcome = compare({"a.yuv", "b.yuv", "--size", "194x178", "--pix-fmt", pixels,
          "--threads", threads, "--format", "json"});
      EXPECT_EQ(outcome.status, 0) << outcome.err;
      documents.push_back(outcome.out);
    }
    EXPECT_EQ(documents[0], documents[1]);
    EXPECT_EQ(documents[0], documents[2]);
  }
}

TEST_F(VideoProgram, DirectoriesMayHoldVideosAndPictures) {
  std::filesystem::create_directory(folder_.file("r"));
  std::filesystem::create_directory(folder_.file("d"));
  write_bytes("r/a.y4m", flat(3, 0, 0));
  write_bytes("d/a.y4m", flat(2, 2, 0));
  write("r/b.png", reference_picture());
  write("d/b.png", distorted_picture());
  EXPECT_EQ(mse_csv({"r", "d"}),
      "reference,distorted,frame,mse,mse-y,mse-cb,mse-cr\n"
      "r/a.y4m,d/a.y4m,0,,4,4,4\n"
      "r/a.y4m,d/a.y4m,1,,4,4,4\n"
      "r/b.png,d/b.png,0,3,,,\n");
  const Json settings = json({"r", "d", "-m", "mse"})["settings"];
  EXPECT_EQ(settings["frames"]["d/a.y4m"], Json::parse(R"({"reference": 3, "distorted": 2})"));
}

TEST_F(VideoProgram, AnimationsAreScoredFrameByFrame) {
  if (media::ffmpeg_program().empty()) GTEST_SKIP() << "there is no ffmpeg to write them";
  const Outcome made = spawn(folder_,
      {"sh", "-c",
          "ffmpeg -v error -f lavfi -i testsrc=s=32x24:r=5 -frames:v 4 -f apng -plays 0 a.png && "
          "ffmpeg -v error -i a.png -frames:v 3 -vf negate=components=r+g+b -f apng b.png"});
  ASSERT_EQ(made.status, 0) << made.err;
  const Outcome outcome = compare({"a.png", "b.png", "-m", "mae", "--format", "json"});
  EXPECT_EQ(outcome.err, "similis: note: b.png: has 3 frames but a.png has 4; scored 3 frames\n");
  const Json document = Json::parse(outcome.out);
  ASSERT_EQ(document["frames"].size(), 3u);
  EXPECT_EQ(document["frames"][2]["frame"], 2);
  EXPECT_GT(document["frames"][2]["mae"].get<double>(), 50);
  EXPECT_EQ(document["settings"]["frames"], Json::parse(R"({"reference": 4, "distorted": 3})"));
  EXPECT_EQ(
      compare({"a.png", "a.png", "-m", "mse", "--frames", "1:", "--every", "2", "--format=csv"})
          .out,
      "frame,mse\n1,0\n3,0\n");
  EXPECT_THAT(compare({"a.png", "a.png", "-m", "mse"}).out, StartsWith("metric      mean"));
}

// Frames are read into the same memory: many take no more than few.
TEST_F(VideoProgram, MemoryStaysFlat) {
  if (!media::kMeasuresMemory) GTEST_SKIP() << "a sanitizer takes more than any video";
  const auto peak_kilobytes = [&](int frames) {
    write_bytes("a.y4m", flat(frames, 0, 0, format("yuv420p", 320, 240)));
    const std::string script =  // which waits for the end of its input until it has been looked at
        "{ cat a.y4m; sleep 0.5; } | " + std::string(SIMILIS_PROGRAM) +
        " compare - a.y4m -m mse --threads 2 --format csv > scores.csv & "
        "while grep VmHWM /proc/$!/status; do :; done; wait $!";
    const Outcome outcome = spawn(folder_, {"sh", "-c", script});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const std::size_t last = outcome.out.rfind("VmHWM:");  // it only grows
    return last == std::string::npos ? 0 : std::stol(outcome.out.substr(last + 6));
  };
  const long few = peak_kilobytes(60), many = peak_kilobytes(600);
  EXPECT_GT(few, 0);
  EXPECT_LT(many, few + 8192) << "600 frames are 69 MB";
}

// SD video is BT.601 unless it says otherwise, HD video BT.709: the settings say so of each pair.
TEST_F(VideoProgram, ColoursOfADirectoryAreThoseOfEachVideo) {
  for (const std::string side : {"r", "d"}) {
    std::filesystem::create_directory(folder_.file(side));
    write_bytes(side + "/hd.y4m", flat(1, 90, 0, format("yuv420p", 16, 640)));
    write_bytes(side + "/sd.y4m", flat(1, 90, 0, format("yuv420p", 16, 480)));
  }
  write("r/still.png", reference_picture());
  write("d/still.png", reference_picture());
  const Json mixed = json({"r", "d", "-m", "ssimulacra2", "-m", "mse"});
  const Json& shared = mixed["settings"]["metrics"]["ssimulacra2"];
  EXPECT_EQ(shared["mode"], "exact");
  EXPECT_TRUE(shared["matrix"].is_null()) << shared;
  ASSERT_EQ(mixed["pairs"].size(), 3u);
  const auto own = [&](std::size_t i) { return mixed["pairs"][i]["settings"]["metrics"]; };
  EXPECT_EQ(own(0)["ssimulacra2"]["matrix"], "bt709");
  EXPECT_EQ(own(1)["ssimulacra2"]["matrix"], "bt601");
  EXPECT_FALSE(own(0).contains("mse"));
  EXPECT_FALSE(mixed["pairs"][2]["settings"].contains("metrics"))
      << "a picture has no choice of colours";
  EXPECT_THAT(compare({"r", "d", "-m", "ssimulacra2", "--format", "xml"}).out,
      HasSubstr("        <metric name=\"ssimulacra2\" matrix=\"bt601\""));

  std::filesystem::remove(folder_.file("r/sd.y4m"));
  std::filesystem::remove(folder_.file("r/still.png"));
  const Json alike = json({"r", "d", "-m", "ssimulacra2"});
  EXPECT_EQ(alike["settings"]["metrics"]["ssimulacra2"]["matrix"], "bt709");
  EXPECT_FALSE(alike["pairs"][0].contains("settings"));
}

}  // namespace
}  // namespace similis::cli
