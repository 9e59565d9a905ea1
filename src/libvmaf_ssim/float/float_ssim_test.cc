// SPDX-License-Identifier: Apache-2.0
// float_ssim, float_ms_ssim and libvmaf_psnr against their definitions in plain loops. Planes of
// averages have the reference's bits; the order of the last sums may move a mean by one rounding.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "src/libvmaf_ssim/reference.h"
#include "src/libvmaf_ssim/test_planes.h"
#include "tests/backends.h"

namespace similis::libvmaf_ssim_internal {
namespace {

using test::Layout;

constexpr double kOneRounding = 0x1p-23;  // for means up to 2

// All numbers of one call of float_ssim, in the order of SsimMeans, pair by pair.
std::vector<double> all_of_float_ssim(
    const TestPlanes& planes, const FloatSsimOptions& options, const Execution& exec = {}) {
  std::vector<Tensor> results;
  const Extents shape = planes.x.shape.rank() == 3 ? Extents{planes.x.shape[0]} : Extents{};
  for (int i = 0; i < 4; ++i) results.push_back(allocate(shape, DType::f64));
  FloatSsimOptions of_depth = options;
  of_depth.bit_depth = planes.depth;
  float_ssim_into(planes.x, planes.y,
      {.value = results[0],
          .luminance = results[1],
          .contrast = results[2],
          .structure = results[3]},
      of_depth, exec);
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < shape.count(); ++i) {
    for (const Tensor& result : results) numbers.push_back(result.elements<double>()[i]);
  }
  return numbers;
}

std::vector<double> numbers_of(const std::vector<SsimMeans>& pairs) {
  std::vector<double> numbers;
  for (const SsimMeans& means : pairs) {
    for (const float mean : {means.ssim, means.luminance, means.contrast, means.structure}) {
      numbers.push_back(static_cast<double>(mean));
    }
  }
  return numbers;
}

// Kept for all tests: starting threads takes longer than small planes do.
ParallelRunner seven_threads() {
  static ThreadPool pool(7);
  return pool.runner();
}

void expect_the_reference(const TestPlanes& planes, int scale) {
  const std::vector<double> expected = numbers_of(reference_float_ssim(planes.pairs(), scale));
  std::vector<double> first;
  for (const test::Backend& backend : test::backends()) {
    const test::ScopedBackend chosen(backend);
    for (const ParallelRunner& runner : {serial_runner(), seven_threads()}) {
      const std::vector<double> actual =
          all_of_float_ssim(planes, {.scale = scale}, {.runner = runner});
      EXPECT_LE(test::max_difference(actual, expected), kOneRounding) << backend.name;
      if (first.empty()) first = actual;
      EXPECT_EQ(actual, first) << backend.name;
    }
  }
}

class FloatSsim : public testing::TestWithParam<Scene> {};

TEST_P(FloatSsim, IsTheReference) {
  for (const int depth : {8, 10, 12, 16}) {
    for (const Extents& shape : {Extents{11, 11}, Extents{12, 43}, Extents{75, 171}}) {
      SCOPED_TRACE(testing::Message() << depth << " bits, " << shape[0] << "x" << shape[1]);
      expect_the_reference(TestPlanes(GetParam(), shape, depth), 1);
    }
  }
}

TEST_P(FloatSsim, OfShrunkPlanesIsTheReference) {
  for (const int scale : {2, 3, 4, 5, 7, 10}) {
    SCOPED_TRACE(scale);
    expect_the_reference(TestPlanes(GetParam(), {11 * scale, 12 * scale + 3}, 8), scale);
    expect_the_reference(TestPlanes(GetParam(), {13 * scale - 1, 11 * scale + 1}, 10), scale);
  }
}

INSTANTIATE_TEST_SUITE_P(Scenes, FloatSsim, testing::ValuesIn(kScenes),
    [](const testing::TestParamInfo<Scene>& scene) { return name(scene.param); });

TEST(FloatSsimPlanes, HaveTheSameBitsForAnyNumberOfThreads) {
  expect_the_reference(TestPlanes(Scene::noise, {75, 171}, 10), 1);
  expect_the_reference(TestPlanes(Scene::noise, {75, 171}, 10), 2);
}

TEST(FloatSsimPlanes, MayLieAnyhow) {
  const TestPlanes dense(Scene::textured, {2, 30, 160}, 10);
  for (const int scale : {1, 2}) {
    for (const Layout layout :
        {Layout::permuted, Layout::reversed, Layout::sliced, Layout::offset}) {
      const TestPlanes planes(Scene::textured, {2, 30, 160}, 10, layout);
      EXPECT_EQ(
          all_of_float_ssim(planes, {.scale = scale}), all_of_float_ssim(dense, {.scale = scale}))
          << test::name(layout);
    }
  }
}

TEST(FloatSsimPlanes, AreShrunkToAbout256UnlessScaleSaysOtherwise) {
  EXPECT_EQ(automatic_scale(90, 160), 1);
  EXPECT_EQ(automatic_scale(383, 1000), 1);
  EXPECT_EQ(automatic_scale(384, 1000), 2);  // a half goes up
  EXPECT_EQ(automatic_scale(1920, 1080), 4);
  EXPECT_EQ(automatic_scale(2160, 3840), 8);
  const TestPlanes planes(Scene::textured, {400, 390}, 8);
  EXPECT_EQ(all_of_float_ssim(planes, {}), all_of_float_ssim(planes, {.scale = 2}));
  EXPECT_NE(all_of_float_ssim(planes, {}), all_of_float_ssim(planes, {.scale = 1}));
}

TestPlanes flat(double x, double y) {
  TestPlanes planes(Scene::constants, {64, 80}, 8);
  planes.x = test::make({64, 80}, DType::u8, Layout::dense, [&](std::int64_t) { return x; });
  planes.y = test::make({64, 80}, DType::u8, Layout::dense, [&](std::int64_t) { return y; });
  return planes;
}

TEST(FloatSsimPlanes, ThatAreFlatScoreTheirLuminance) {
  EXPECT_NEAR(all_of_float_ssim(flat(16, 25), {})[0], 0.908733, 5e-7);
  EXPECT_NEAR(all_of_float_ssim(flat(0, 10), {})[0], 0.061054, 5e-7);
  EXPECT_EQ(all_of_float_ssim(flat(7, 7), {})[0], 1);
}

TEST(FloatSsimDecibels, AreThoseOfTheScore) {
  const TestPlanes planes(Scene::textured, {64, 80}, 8);
  const double score = all_of_float_ssim(planes, {})[0];
  EXPECT_DOUBLE_EQ(all_of_float_ssim(planes, {.enable_db = true})[0], -10 * std::log10(1 - score));
  EXPECT_EQ(all_of_float_ssim(planes, {.clip_db = true})[0], score);
  EXPECT_EQ(all_of_float_ssim(flat(7, 7), {.enable_db = true})[0],
      std::numeric_limits<double>::infinity());
  // 10·log10(255² / (0.5 / (64·80))) is 88.2.
  EXPECT_EQ(all_of_float_ssim(flat(7, 7), {.enable_db = true, .clip_db = true})[0], 89);
  TestPlanes ten_bits(Scene::black, {64, 80}, 10);
  EXPECT_EQ(all_of_float_ssim(ten_bits, {.enable_db = true, .clip_db = true})[0], 101);
}

struct MsSsimResults {
  explicit MsSsimResults(
      const TestPlanes& planes, const FloatMsSsimOptions& given = {}, const Execution& exec = {}) {
    FloatMsSsimOptions options = given;
    options.bit_depth = planes.depth;
    float_ms_ssim_into(planes.x, planes.y,
        {.value = value, .luminance = luminance, .contrast = contrast, .structure = structure},
        options, exec);
  }
  std::vector<double> all() const {
    std::vector<double> numbers = to_doubles(value);
    for (const Tensor& of_scales : {luminance, contrast, structure}) {
      for (const double number : to_doubles(of_scales)) numbers.push_back(number);
    }
    return numbers;
  }

  Tensor value = allocate({}, DType::f64);
  Tensor luminance = allocate({5}, DType::f64), contrast = allocate({5}, DType::f64),
         structure = allocate({5}, DType::f64);
};

void expect_the_ms_reference(const TestPlanes& planes) {
  const MsSsimMeans reference = reference_float_ms_ssim(planes.pairs())[0];
  std::vector<double> expected;
  for (const auto mean : {&SsimMeans::luminance, &SsimMeans::contrast, &SsimMeans::structure}) {
    for (const SsimMeans& of_scale : reference) {
      expected.push_back(static_cast<double>(of_scale.*mean));
    }
  }
  std::vector<double> first;
  for (const test::Backend& backend : test::backends()) {
    const test::ScopedBackend chosen(backend);
    const std::vector<double> numbers =
        MsSsimResults(planes, {}, {.runner = seven_threads()}).all();
    const std::vector<double> means(numbers.begin() + 1, numbers.end());
    EXPECT_LE(test::max_difference(means, expected), kOneRounding) << backend.name;
    if (first.empty()) first = numbers;
    EXPECT_TRUE(numbers == first || std::isnan(first[0])) << backend.name;
  }
}

TEST(FloatMsSsim, IsTheReference) {
  expect_the_ms_reference(TestPlanes(Scene::textured, {176, 176}, 8));
  expect_the_ms_reference(TestPlanes(Scene::noise, {177, 301}, 10));
  expect_the_ms_reference(TestPlanes(Scene::crossing, {203, 178}, 16));
}

TEST(FloatMsSsim, IsTheProductOfThePowersOfItsMeans) {
  const MsSsimResults results(TestPlanes(Scene::textured, {180, 200}, 8));
  const double powers[] = {.0448, .2856, .3001, .2363, .1333};
  double product = std::pow(results.luminance.elements<double>()[4], .1333);
  for (int i = 0; i < 5; ++i) {
    product *= std::pow(results.contrast.elements<double>()[i], powers[i]) *
               std::pow(results.structure.elements<double>()[i], powers[i]);
  }
  EXPECT_NEAR(item(results.value), product, 1e-7);
  EXPECT_LT(item(results.value), 0.999);
}

TEST(FloatMsSsim, HasDecibelsToo) {
  const TestPlanes planes(Scene::textured, {180, 200}, 8);
  const double score = item(MsSsimResults(planes).value);
  EXPECT_DOUBLE_EQ(
      item(MsSsimResults(planes, {.enable_db = true}).value), -10 * std::log10(1 - score));
  const TestPlanes black(Scene::black, {180, 200}, 8);
  EXPECT_EQ(item(MsSsimResults(black, {.enable_db = true, .clip_db = true}).value), 97);
}

TEST(FloatMsSsim, OfInvertedPlanesIsNotANumber) {
  EXPECT_TRUE(std::isnan(item(MsSsimResults(TestPlanes(Scene::inverted, {176, 180}, 8)).value)));
}

TEST(LibvmafPsnr, IsTheDefinitionWithACap) {
  const TestPlanes planes = flat(16, 25);
  EXPECT_NEAR(item(libvmaf_psnr(planes.x, planes.y)), 10 * std::log10(255.0 * 255 / 81), 1e-12);
  EXPECT_EQ(item(libvmaf_psnr(planes.x, planes.x)), 60);
  for (const int depth : {10, 12, 16}) {
    const TestPlanes black(Scene::black, {9, 7}, depth);
    EXPECT_EQ(item(libvmaf_psnr(black.x, black.y, {.bit_depth = depth})), 6 * depth + 12);
    const TestPlanes constants(Scene::constants, {2, 9, 7}, depth);
    const double peak = std::exp2(depth) - 1;
    const double error = std::floor(peak / 2) - std::floor(peak / 3);
    for (const double decibels :
        to_doubles(libvmaf_psnr(constants.x, constants.y, {.bit_depth = depth}))) {
      EXPECT_NEAR(decibels, 20 * std::log10(peak / error), 1e-12);
    }
  }
}

}  // namespace
}  // namespace similis::libvmaf_ssim_internal
