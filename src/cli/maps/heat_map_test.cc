// SPDX-License-Identifier: Apache-2.0
#include "src/cli/maps/heat_map.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "similis/execution.hpp"
#include "src/cli/maps/color_scale.h"
#include "src/cli/maps/middle_slices.h"
#include "src/cli/terminal/glyphs.h"

namespace similis::cli {
namespace {

constexpr MapRange kRange{.best = 1, .worst = 0};

double luminance(const Rgb& color) {
  double sum = 0;
  const double weights[] = {0.2126, 0.7152, 0.0722};
  for (std::size_t c = 0; c < 3; ++c) {
    const double code = color[c] / 255.0;
    sum += weights[c] * (code <= 0.04045 ? code / 12.92 : std::pow((code + 0.055) / 1.055, 2.4));
  }
  return sum;
}

Rgb pixel(const media::Image& image, std::int64_t x, std::int64_t y) {
  const auto at = static_cast<std::size_t>((y * image.width + x) * 3);
  return {image.samples8[at], image.samples8[at + 1], image.samples8[at + 2]};
}

TEST(ColorScale, LuminanceRisesFromDarkToBright) {
  EXPECT_LT(luminance(scale_color(0)), 0.01);
  EXPECT_GT(luminance(scale_color(1)), 0.8);
  for (int i = 1; i <= 256; ++i) {
    EXPECT_GT(luminance(scale_color(i / 256.0)), luminance(scale_color((i - 1) / 256.0))) << i;
  }
}

TEST(ColorScale, PositionsFollowTheLossAndStopAtTheEnds) {
  EXPECT_EQ(scale_position(1, kRange), 0);
  EXPECT_EQ(scale_position(0.75, kRange), 0.5);
  EXPECT_EQ(scale_position(0, kRange), 1);
  EXPECT_EQ(scale_position(-0.5, kRange), 1);
  EXPECT_EQ(scale_position(1.5, kRange), 0);
  EXPECT_EQ(scale_position(25, {.best = 0, .worst = 100}), 0.5);  // a metric of errors
}

TEST(HeatMap, ShowsTheMeanOverChannelsPixelByPixel) {
  const Tensor map = allocate({1, 2, 3, 400}, DType::f32);
  for (std::int64_t i = 0; i < map.shape.count(); ++i) map.elements<float>()[i] = 1;
  map.elements<float>()[400 + 7] = 0.25F;         // channel 0, row 1, column 7
  map.elements<float>()[1200 + 400 + 7] = 0.75F;  // channel 1
  const media::Image image = heat_map(map, {.range = kRange, .title = "ssim 0.9"});
  EXPECT_EQ(image.width, 400);
  EXPECT_EQ(pixel(image, 7, 1), scale_color(scale_position(0.5, kRange)));
  EXPECT_EQ(pixel(image, 8, 1), scale_color(0));
  EXPECT_EQ(pixel(image, 399, 2), scale_color(0));
}

TEST(HeatMap, TheScaleRunsFromBestToWorstBelowTheMap) {
  const Tensor map = allocate({1, 1, 5, 600}, DType::f64);
  for (std::int64_t i = 0; i < map.shape.count(); ++i) map.elements<double>()[i] = 1;
  const media::Image image = heat_map(map, {.range = kRange, .title = "ssim"});
  int bars = 0;
  for (std::int64_t y = 5; y < image.height; ++y) {
    int darkest = 0, brightest = 0;
    for (std::int64_t x = 0; x < image.width; ++x) {
      darkest += pixel(image, x, y) == scale_color(0);
      brightest += pixel(image, x, y) == scale_color(1);
    }
    bars += darkest > 0 && brightest > 0;
  }
  EXPECT_EQ(bars, 12 * dot_for(600));  // as many rows as the bar is high
}

TEST(HeatMap, ASmallMapStillHasAReadableScale) {
  const Tensor map = allocate({1, 1, 1, 1}, DType::f32);
  *map.elements<float>() = 0;
  const media::Image image = heat_map(map, {.range = kRange, .title = "ssim 0.1234"});
  EXPECT_GE(image.width, 200);
  EXPECT_EQ(pixel(image, 0, 0), scale_color(1));
  EXPECT_EQ(pixel(image, 1, 0), (Rgb{255, 255, 255}));
}

TEST(HeatMap, MapsOfErrorsHaveOneScaleForAllDepths) {
  const MapRange error{.best = 0, .worst = 1, .scale = MapScale::of_range};
  for (const auto& [data_range, worst] :
      {std::pair(255.0, 50.0), {1023.0, 200.0}, {65535.0, 10000.0}, {1.0, 0.2}, {0.0, 0.2}}) {
    EXPECT_DOUBLE_EQ(for_data_range(error, data_range).worst, worst) << data_range;
  }
  const MapRange squared{.best = 0, .worst = 1, .scale = MapScale::of_squared_range};
  EXPECT_DOUBLE_EQ(for_data_range(squared, 255).worst, 2500);
  EXPECT_DOUBLE_EQ(for_data_range(kRange, 255).worst, 0) << "a fixed scale stays";
}

TEST(HeatMap, TheWorstLossCanBeChosen) {
  const Tensor map = allocate({1, 1, 1, 2}, DType::f32);
  map.elements<float>()[0] = 0.9F;
  map.elements<float>()[1] = 0.7F;
  EXPECT_NEAR(drawn_range(map, kRange, {.fits_loss = true}).worst, 0.7, 1e-6);
  EXPECT_NEAR(drawn_range(map, kRange, {.largest_loss = 0.05}).worst, 0.95, 1e-12);
  EXPECT_EQ(drawn_range(map, {.best = 0, .worst = 10}, {.largest_loss = 0.05}).worst, 0.05);
  map.elements<float>()[0] = map.elements<float>()[1] = 1;
  EXPECT_EQ(drawn_range(map, kRange, {.fits_loss = true}).worst, 0) << "nothing is lost";
}

TEST(MiddleSlices, LabelsNameTheSliceAndTheSidesOfTheBody) {
  const Extents shape = {1, 1, 40, 60, 50};
  const std::vector<Label> labels = slice_labels(shape, {1, 1, 2}, {'L', 'A', 'S'});
  std::string texts;
  for (const Label& label : labels) texts += label.text + " ";
  EXPECT_EQ(texts, "z 20 R L A P y 30 R L S I x 25 P A S I ");
  EXPECT_EQ(slice_labels(shape, {1, 1, 2}, {}).size(), 3U) << "the sides are not known";
  EXPECT_TRUE(slice_labels({1, 1, 60, 50}, {1, 1, 1}, {'L', 'A', 'S'}).empty());
}

TEST(Glyphs, EveryLetterOfALabelHasDots) {
  for (const char letter : std::string("0123456789abcdefghijklmnopqrstuvwxyz.,-=RLAPSI")) {
    int dots = 0;
    draw_text(std::string(1, letter), [&](int x, int y) {
      EXPECT_TRUE(x >= 0 && x < kGlyphWidth && y >= 0 && y < kGlyphHeight) << letter;
      ++dots;
    });
    EXPECT_GT(dots, 3) << letter;
  }
  EXPECT_EQ(text_width("abc"), 3 * kGlyphAdvance - 1);
}

}  // namespace
}  // namespace similis::cli
