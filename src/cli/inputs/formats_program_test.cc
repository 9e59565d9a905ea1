// SPDX-License-Identifier: Apache-2.0
// The program on picture formats that need no library, and the memory that it takes for pictures.
#include <bit>
#include <cmath>

#include "src/cli/test_program.h"
#include "src/media/io/test_cost.h"

namespace similis::cli {
namespace {

using media::Buffer;
using media::Image;

Buffer ppm(const Image& image) {
  const std::string header = fmt::format("P6\n{} {}\n255\n", image.width, image.height);
  Buffer bytes(header.begin(), header.end());
  bytes.insert(bytes.end(), image.samples8.begin(), image.samples8.end());
  return bytes;
}

Buffer pfm(std::int64_t width, std::int64_t height, const std::vector<float>& samples) {
  const std::string header = fmt::format("Pf\n{} {}\n-1.0\n", width, height);
  Buffer bytes(header.begin(), header.end());
  for (const float sample : samples) {
    const auto word = std::bit_cast<std::uint32_t>(sample);
    for (int shift = 0; shift < 32; shift += 8) {
      bytes.push_back(static_cast<std::uint8_t>(word >> shift));
    }
  }
  return bytes;
}

class Formats : public ProgramTest {};

TEST_F(Formats, PortableMapsScoreAsPngDoes) {
  write("a.png", reference_picture());
  write("b.png", distorted_picture());
  write_bytes("a.ppm", ppm(reference_picture()));
  write_bytes("b.ppm", ppm(distorted_picture()));
  setenv("SIMILIS_FFMPEG", "/nowhere/ffmpeg", 1);
  const std::vector<std::string> metrics = {"-m", "psnr,ssim,ncc,ssimulacra2"};
  const auto scores = [&](const char* x, const char* y) {
    return json({x, y, metrics[0], metrics[1]})["frames"];
  };
  EXPECT_EQ(scores("a.ppm", "b.ppm"), scores("a.png", "b.png"));
  EXPECT_EQ(scores("a.png", "b.ppm"), scores("a.png", "b.png"));
  unsetenv("SIMILIS_FFMPEG");
}

TEST_F(Formats, PicturesOneAfterTheOtherAreFrames) {
  Buffer x = ppm(reference_picture()), y = x;
  const Buffer second = ppm(distorted_picture());
  x.insert(x.end(), x.begin(), x.begin() + static_cast<std::ptrdiff_t>(second.size()));
  y.insert(y.end(), second.begin(), second.end());
  write_bytes("x.ppm", x);
  write_bytes("y.ppm", y);
  const Json frames = json({"x.ppm", "y.ppm", "-m", "mse"})["frames"];
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0]["mse"], 0);
  EXPECT_EQ(frames[1]["mse"], 3);
}

TEST_F(Formats, FloatsHaveADataRangeOfOneUnlessItIsGiven) {
  std::vector<float> x(12 * 12), y;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 13) / 16;
  for (const float sample : x) y.push_back(sample + 0.125f);
  write_bytes("x.pfm", pfm(12, 12, x));
  write_bytes("y.pfm", pfm(12, 12, y));
  const Json document =
      json({"x.pfm", "y.pfm", "-m", "mse", "-m", "psnr", "-m", "psnr=data_range=4", "-m", "ssim"});
  const Json& frame = document["frames"][0];
  EXPECT_EQ(frame["mse"], 1.0 / 64);
  EXPECT_NEAR(frame["psnr"].get<double>(), 10 * std::log10(64), 1e-12);
  EXPECT_NEAR(frame["psnr=data_range=4"].get<double>(), 10 * std::log10(16 * 64), 1e-12);
  EXPECT_EQ(document["settings"]["metrics"]["ssim"]["data_range"], 1);
  EXPECT_EQ(document["settings"]["bit_depth"], 32);

  y[17] = std::nanf("");  // in the second row from the bottom
  write_bytes("y.pfm", pfm(12, 12, y));
  expect_error({"compare", "x.pfm", "y.pfm", "-m", "mse"}, 1,
      "y.pfm has 1 value that is not finite, the first at x 5, y 10");
  expect_error({"compare", "x.pfm", "x.pfm", "-m", "ssimulacra2"}, 1,
      "ssimulacra2: x.pfm has floating-point samples; it takes pictures of 8 or 16 bits");
}

// A pair of 48 megapixels, 24 bits each, may take 0.6 GB: 12.5 bytes a pixel, of which 6 are its
// samples and, in this uncompressed format, 6 the files.
TEST_F(Formats, BytesTakeNoMoreMemoryThanTheyMust) {
  if (!media::kMeasuresMemory) GTEST_SKIP() << "a sanitizer takes more than any picture";
  constexpr std::int64_t kWidth = 4096, kHeight = 3072;
  const auto peak = [&](std::int64_t width, std::int64_t height) {
    write_bytes("a.ppm", ppm(reference_picture(width, height)));
    write_bytes("b.ppm", ppm(distorted_picture(width, height)));
    const Outcome outcome =
        compare({"a.ppm", "b.ppm", "-m", "psnr", "-m", "ssim", "--threads", "2"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return static_cast<double>(outcome.peak_kilobytes) * 1024;
  };
  const double least = peak(64, 64);
  const double bytes_per_pixel = (peak(kWidth, kHeight) - least) / (kWidth * kHeight);
  EXPECT_LT(bytes_per_pixel, 12.5);
  EXPECT_GT(bytes_per_pixel, 6) << "the peak is measured";
}

}  // namespace
}  // namespace similis::cli
