// SPDX-License-Identifier: Apache-2.0
// Registration of images whose true map is known, and its refusals.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "similis/fields.hpp"
#include "similis/register.hpp"
#include "src/registration/geometry.h"
#include "src/registration/guard.h"
#include "src/registration/levels.h"
#include "src/registration/options.h"
#include "src/registration/passes.h"
#include "src/registration/test_images.h"
#include "tests/arrays.h"
#include "tests/refusal.h"

namespace similis {
namespace {

using namespace registration_internal;

Point stay(const Point& p) { return p; }

TEST(Registration, FindsATurnAndAShift) {
  for (const int rank : {2, 3}) {
    const Grid fixed = grid_of(rank, {52, 48, 50}, {3, 3, 3}),
               moving = grid_of(rank, {60, 50, 44}, {2.6, 3.1, 3.6});
    const Map truth = turned(rank, rank == 2 ? 25 : 22, {9, -6, rank == 3 ? 5.0 : 0.0});
    const std::vector<Blob> all = blobs(rank, 3);
    Tensor own, other;
    const Volume f = image_of(fixed, all, stay, own);
    const Map back = inverse(truth);
    const Volume m = image_of(
        moving, all, [&](const Point& p) { return back(p); }, other);
    std::vector<std::vector<RegisterStage>> choices = {
        {RegisterStage::rigid, RegisterStage::affine}};
    if (rank == 2) {
      choices.push_back({RegisterStage::rigid});
      choices.push_back({RegisterStage::affine});
      choices.push_back({RegisterStage::similarity, RegisterStage::affine});
    }
    for (const std::vector<RegisterStage>& stages : choices) {
      const Registration r = register_images(f, m, {.stages = stages});
      EXPECT_LT(error_of(r, fixed, truth), 0.5) << rank << "D, " << stages.size() << " stages";
      EXPECT_TRUE(r.displacement.empty());
      EXPECT_EQ(r.stages.size(), stages.size());
    }
  }
}

TEST(Registration, FindsAScaleByASimilarity) {
  const Grid grid = grid_of(3, {52, 48, 50}, {3, 3, 3});
  Map truth = turned(3, 8, {4, 3, -2});
  truth.linear = 1.12 * truth.linear;
  const Map back = inverse(truth);
  const std::vector<Blob> all = blobs(3, 4);
  Tensor own, other;
  const Volume f = image_of(grid, all, stay, own);
  const Volume m = image_of(
      grid, all, [&](const Point& p) { return back(p); }, other);
  const Registration r =
      register_images(f, m, {.stages = {RegisterStage::rigid, RegisterStage::similarity}});
  EXPECT_LT(error_of(r, grid, truth), 0.5);
  EXPECT_NEAR(std::cbrt(determinant(map_of(r.affine).linear)), 1.12, 0.005);
}

// Full steps leave the loss on a plateau, and shorter ones go on from there.
TEST(Registration, LevelsDoNotEndBeforeTheirStepsBecomeShorter) {
  const Grid grid = grid_of(2, {48, 44, 1}, {3, 3, 1});
  Tensor own, other;
  const Volume f = image_of(
      grid, blobs(2, 5), [](const Point& p) { return waved(p, 2); }, own);
  const Volume m = image_of(grid, blobs(2, 5), stay, other);
  for (const RegisterStage stage : {RegisterStage::deformable, RegisterStage::symmetric}) {
    const Registration r = register_images(f, m,
        {.stages = {stage},
            .start = RegisterStart::identity,
            .preset = RegisterPreset::quick,
            .tolerance = 1});
    ASSERT_EQ(r.stages.front().levels.size(), 3u);
    const std::size_t iterations[] = {16, 11, 10};  // of 30, 20 and 10; a slope is of 10 losses
    for (std::size_t l = 0; l < 3; ++l) {
      const RegisterLevel& level = r.stages.front().levels[l];
      EXPECT_EQ(level.loss.size(), iterations[l]) << l;
      EXPECT_STREQ(level.stopped, "tolerance") << l;
    }
  }
}

// fixed(p) shows what moving shows at T(p), so fixed is drawn at waved(p) and moving plainly.
TEST(RegistrationQuality, FindsASmoothWarpWithoutFolds) {
  for (const int rank : {2, 3}) {
    const Grid fixed = grid_of(rank, {56, 50, 52}, {2.6, 2.8, 2.7}),
               moving = grid_of(rank, {60, 56, 50}, {2.5, 2.4, 2.9});
    const std::vector<Blob> all = blobs(rank, 5);
    const auto truth = [&](const Point& p) { return waved(p, rank); };
    Tensor own, other;
    const Volume f = image_of(fixed, all, truth, own);
    const Volume m = image_of(moving, all, stay, other);
    Registration none;
    const double before = error_of(none, fixed, truth);
    const Registration r = register_images(f, m);
    const double after = error_of(r, fixed, truth);
    EXPECT_GT(before, 3) << rank;
    EXPECT_LT(after, 0.85) << rank << "D from " << before;
    EXPECT_GE(r.min_jacobian, 0.1);
    EXPECT_GE(corner_minimum(fixed, r.displacement), 0.0999);
    EXPECT_GT(corner_minimum(fixed, r.inverse_displacement), 0);
    EXPECT_LT(r.inverse_error_mm.mean, 0.05 * 2.6);
    EXPECT_LT(r.inverse_error_mm.p99, 0.25 * 2.6);
    // The warped image is fixed's picture.
    double square = 0, all_square = 0;
    for (std::int64_t i = 0; i < fixed.voxels(); ++i) {
      const double d =
          static_cast<double>(r.warped.elements<float>()[i] - own.elements<float>()[i]);
      square += d * d;
      all_square += std::pow(static_cast<double>(own.elements<float>()[i]), 2);
    }
    EXPECT_LT(std::sqrt(square / all_square), 0.05) << rank;
  }
}

class DeformableStage : public testing::TestWithParam<RegisterStage> {};

// Voxels that a mask leaves out add nothing: neither NaN nor a wrong region changes a bit.
TEST_P(DeformableStage, NeverReadsWhatAMaskLeavesOut) {
  const Grid grid = grid_of(3, {34, 30, 32}, {4, 4, 4});
  const std::vector<Blob> all = blobs(3, 6);
  Tensor own, other;
  const Volume f = image_of(
      grid, all, [](const Point& p) { return waved(p, 3); }, own);
  const Volume m = image_of(grid, all, stay, other);
  const Extents shape = {32, 30, 34};
  const auto inside = [](std::int64_t i) {
    return std::abs(i % 34 - 12) > 4 || std::abs(i / 34 % 30 - 15) > 4 ||
           std::abs(i / 1020 - 16) > 5;
  };
  const test::Array mask = test::make(
      shape, DType::u8, test::Layout::dense, [&](std::int64_t i) { return inside(i) ? 1 : 0; });
  const RegisterOptions options{.stages = {RegisterStage::rigid, GetParam()},
      .start = RegisterStart::identity,
      .iterations = {6, 4},
      .levels = {2, 1},
      .fixed_mask = mask,
      .moving_mask = mask};
  const Registration plain = register_images(f, m, options);
  for (const double filler : {std::nan(""), 1e6}) {
    for (std::int64_t i = 0; i < grid.voxels(); ++i) {
      if (!inside(i))
        own.elements<float>()[i] = other.elements<float>()[i] = static_cast<float>(filler);
    }
    const Registration filled = register_images(f, m, options);
    EXPECT_EQ(filled.affine, plain.affine) << filler;
    EXPECT_EQ(to_doubles(filled.displacement), to_doubles(plain.displacement)) << filler;
  }
}

TEST_P(DeformableStage, HasTheSameBitsForAnyNumberOfThreads) {
#ifdef SIMILIS_SANITIZED  // each access is checked: the larger grid takes minutes
  const Grid grid = grid_of(3, {18, 17, 19}, {7.5, 7.5, 7.5});
  const std::vector<int> counts = {7};
#else
  const Grid grid = grid_of(3, {27, 25, 29}, {5, 5, 5});
  const std::vector<int> counts = {2, 7};
#endif
  const std::vector<Blob> all = blobs(3, 7);
  Tensor own, other;
  const Volume f = image_of(
      grid, all, [](const Point& p) { return waved(p, 3); }, own);
  const Volume m = image_of(grid, all, stay, other);
  const RegisterOptions options{.stages = {RegisterStage::rigid, RegisterStage::affine, GetParam()},
      .iterations = {8, 5},
      .levels = {2, 1}};
  const Registration alone = register_images(f, m, options, {.runner = serial_runner()});
  for (const int threads : counts) {
    ThreadPool pool(threads);
    const Registration r = register_images(f, m, options, {.runner = pool.runner()});
    EXPECT_EQ(r.affine, alone.affine);
    EXPECT_EQ(to_doubles(r.displacement), to_doubles(alone.displacement));
    EXPECT_EQ(to_doubles(r.inverse_displacement), to_doubles(alone.inverse_displacement));
  }
}

INSTANTIATE_TEST_SUITE_P(Stages, DeformableStage,
    testing::Values(RegisterStage::deformable, RegisterStage::symmetric),
    [](const auto& stage) { return name(stage.param); });

TEST(Registration, TakesMutualInformationAcrossContrasts) {
  const Grid grid = grid_of(2, {90, 84, 1}, {1.7, 1.6, 1});
  const std::vector<Blob> all = blobs(2, 8);
  const auto truth = [](const Point& p) { return waved(p, 2); };
  Tensor own, other;
  const Volume f = image_of(grid, all, truth, own);
  const Volume m = image_of(grid, all, stay, other);
  for (std::int64_t i = 0; i < grid.voxels(); ++i) {
    float& value = other.elements<float>()[i];
    value = value < 5 ? value : 160 - value;
  }
  Registration none;
  const Registration r = register_images(
      f, m, {.metrics = {{.metric = RegisterMetric::mi}}, .preset = RegisterPreset::quick});
  EXPECT_LT(error_of(r, grid, truth), 0.6 * error_of(none, grid, truth));
  EXPECT_GT(corner_minimum(grid, r.displacement), 0);
}

TEST(Registration, EndsWhereTheCallerSaysSo) {
  const Grid grid = grid_of(2, {40, 40, 1}, {3, 3, 1});
  const std::vector<Blob> all = blobs(2, 9);
  Tensor own, other;
  const Volume f = image_of(
      grid, all, [](const Point& p) { return waved(p, 2); }, own);
  const Volume m = image_of(grid, all, stay, other);
  int calls = 0;
  RegisterOptions options{.stages = {RegisterStage::deformable}};
  options.progress = [&](const RegisterProgress& at) {
    EXPECT_EQ(at.iteration, calls);
    return ++calls < 5;
  };
  const Registration r = register_images(f, m, options);
  EXPECT_EQ(calls, 5);
  ASSERT_EQ(r.stages.size(), 1u);
  ASSERT_EQ(r.stages[0].levels.size(), 1u);
  EXPECT_STREQ(r.stages[0].levels[0].stopped, "callback");
  EXPECT_EQ(r.stages[0].levels[0].min_jacobian.size(), 4u);
  EXPECT_EQ(r.displacement.shape, (Extents{1, 40, 40, 2}));
  EXPECT_GT(test::largest(to_doubles(r.displacement)), 0.5);
}

TEST(Guard, RepairsAFoldWhereItIs) {
  const Grid grid = grid_of(3, {40, 30, 26}, {1, 1, 1});
  const test::Array u = test::filled(grid.field_shape(), DType::f32, test::Layout::dense, 0);
  const std::int64_t at = ((13 * 30 + 15) * 40 + 20) * 3;
  u.elements<float>()[at] = 2.5f;
  u.elements<float>()[3 * 39] = 0.25f;  // far away, no fold
  const Guarded result = guard(grid, u, 0.1, {});
  EXPECT_TRUE(result.passed);
  EXPECT_GT(result.repaired, 0);
  EXPECT_GE(result.least, 0.1);
  EXPECT_GT(u.elements<float>()[at], 0.1f);
  EXPECT_EQ(u.elements<float>()[3 * 39], 0.25f);
}

class Refusals : public ::testing::Test {
 protected:
  Grid grid_ = grid_of(2, {20, 20, 1}, {5, 5, 1});
  Tensor own_, other_;
  Volume fixed_ = image_of(grid_, blobs(2, 9), stay, own_);
  Volume moving_ = image_of(grid_, blobs(2, 9), stay, other_);

  void refused(const RegisterOptions& options, const char* words) {
    test::expect_refusal([&] { register_images(fixed_, moving_, options); }, words);
  }
};

TEST_F(Refusals, OfOptions) {
  refused({.stages = {}}, "register: stages is empty; give one stage or more");
  refused({.stages = {RegisterStage::affine, RegisterStage::rigid}},
      "register: stages are out of order; each may stand once, in the order translation, rigid, "
      "similarity, affine, deformable, symmetric");
  refused({.metrics = {}}, "register: metrics is empty; give one metric or more");
  refused({.metrics = {{.weight = 0}}},
      "register: a metric's weight is 0; it must be a number above 0");
  refused({.metrics = {{.window_size = 4}}},
      "register: window_size is 4; it must be an odd number from 3 to 255");
  refused({.iterations = {3, 3}, .levels = {1}},
      "register: iterations has 2 numbers and levels 1; they must have as many");
  refused(
      {.levels = {1, 2}}, "register: levels holds 2 after 1; they must fall, from coarse to fine");
  refused({.step = 0}, "register: step is 0; it must be above 0 and up to 1");
  refused({.min_jacobian = 1}, "register: min_jacobian is 1; it must be above 0 and below 1");
  refused({.start = RegisterStart::given, .initial = {}},
      "register: initial is singular: its determinant is 0");
}

TEST_F(Refusals, OfImages) {
  own_.elements<float>()[7] = std::numeric_limits<float>::infinity();
  own_.elements<float>()[9] = std::nanf("");
  refused({},
      "register: fixed has values that are not finite in 2 voxels; mask them, or let nan=mask "
      "leave them out");
  std::fill_n(own_.elements<float>(), 400, std::nanf(""));
  refused({.mask_not_finite = true}, "register: fixed has no value that is finite");
  std::fill_n(own_.elements<float>(), 400, 3.0f);
  refused({}, "register: fixed is 3 everywhere; it must have more than one value");
  own_.elements<float>()[7] = 1;
  const test::Array mask = test::filled({20, 20}, DType::u8, test::Layout::dense, 0);
  refused({.fixed_mask = mask}, "register: fixed's mask counts no voxel");
  const test::Array small = test::filled({19, 20}, DType::u8, test::Layout::dense, 1);
  refused({.moving_mask = small},
      "register: moving_mask has shape [19, 20]; it must be that of moving, [20, 20]");
  moving_.to_world = {};
  refused({}, "register: moving's map to the world is singular: its determinant is 0");
  moving_.to_world = fixed_.to_world;
  moving_.to_world[3] += 1e4;
  refused({.start = RegisterStart::identity},
      "register: the start lays 0.0 % of the fixed voxels over the moving grid; it must be 5 % or "
      "more: choose another start");
  const test::Array deep = test::noise({1, 1, 4, 5, 6}, DType::f32, test::Layout::dense, 1, 1);
  moving_ = {deep};
  refused({}, "register: fixed has 2 axes of space and moving 3; they must have as many");
  const test::Array two = test::noise({1, 2, 4, 5}, DType::f32, test::Layout::dense, 1, 1);
  moving_ = {two};
  refused({}, "register: fixed has 1 channel and moving 2; they must have as many");
  const test::Array thin = test::noise({1, 1, 1, 5}, DType::f32, test::Layout::dense, 1, 1);
  moving_ = {thin};
  refused({},
      "register: moving has shape [1, 1, 1, 5]; every axis of space must have 2 voxels or more");
}

// Two bright balls on flat ground, which the labels tell apart and the images hardly do.
TEST(Register, DiceLaysLabelsOverOneAnother) {
  for (const int rank : {2, 3}) {
    const Grid grid = grid_of(rank, {40, 36, 30}, {2, 2, 2});
    const auto shape = [&](double shift, Tensor& image, Tensor& labels) {
      image = allocate(grid.image_shape(1), DType::f32);
      labels = allocate(rank == 2 ? Extents{36, 40} : Extents{30, 36, 40}, DType::u8);
      for (std::int64_t i = 0; i < grid.voxels(); ++i) {
        const Point p = grid.to_world({static_cast<double>(i % 40),
            static_cast<double>(i / 40 % 36), static_cast<double>(i / 40 / 36)});
        const double z = rank == 3 ? p[2] : 0;
        std::uint8_t label = 0;
        if (std::hypot(p[0] + 16 - shift, p[1], z) < 11) label = 3;
        if (std::hypot(p[0] - 16, p[1] + shift, z) < 9) label = 200;
        if (p[0] > 36 && shift > 0) label = 9;  // only one image has it
        labels.elements<std::uint8_t>()[i] = label;
        image.elements<float>()[i] = static_cast<float>(test::uniform(7, i));
      }
      return Volume{image, rows_of(grid.to_world)};
    };
    Tensor own, other, own_labels, other_labels;
    const Volume f = shape(0, own, own_labels), m = shape(5, other, other_labels);
    for (const RegisterStage stage : {RegisterStage::deformable, RegisterStage::symmetric}) {
      RegisterOptions options{.stages = {stage},
          .start = RegisterStart::identity,
          .metrics = {{.metric = RegisterMetric::dice}},
          .fixed_labels = own_labels,
          .moving_labels = other_labels};
      const auto overlap_of = [&](const Registration& r, std::uint8_t label) {
        TensorView image = other_labels;
        image.shape = grid.image_shape(1);
        image.strides = dense_strides(image.shape);
        const Tensor there = apply_registration(r, f, {image, rows_of(grid.to_world)}, true);
        double both = 0, each = 0;
        for (std::int64_t i = 0; i < grid.voxels(); ++i) {
          const bool is_own = own_labels.elements<std::uint8_t>()[i] == label,
                     is_other = there.elements<float>()[i] == static_cast<float>(label);
          both += is_own && is_other ? 2 : 0;
          each += (is_own ? 1 : 0) + (is_other ? 1 : 0);
        }
        return both / each;
      };
      const Registration r = register_images(f, m, options);
      for (const std::uint8_t label : {3, 200}) {
        EXPECT_LT(overlap_of({}, label), 0.8);
        EXPECT_GT(overlap_of(r, label), 0.95) << rank << " " << static_cast<int>(label);
      }
      EXPECT_LT(r.stages[0].levels.back().loss.back(), -0.9);
      EXPECT_GE(r.min_jacobian, 0.1);
      // Noise tells the images nothing, so it does not keep the labels apart.
      options.metrics.push_back({.metric = RegisterMetric::ncc, .weight = 0.1});
      EXPECT_GT(overlap_of(register_images(f, m, options), 3), 0.9);
    }
  }
}

TEST(Register, RefusesLabels) {
  const Grid grid = grid_of(2, {20, 20, 1}, {1, 1, 1});
  Tensor own;
  const Volume f = image_of(grid, blobs(2, 1), stay, own);
  const Tensor labels = allocate({20, 20}, DType::f32), others = allocate({20, 20}, DType::f32),
               small = allocate({20, 19}, DType::f32);
  const auto refuse = [&](const TensorView& fixed_labels, const TensorView& moving_labels,
                          const char* words) {
    test::expect_refusal(
        [&] {
          register_images(f, f,
              {.metrics = {{.metric = RegisterMetric::dice}},
                  .fixed_labels = fixed_labels,
                  .moving_labels = moving_labels});
        },
        words);
  };
  std::fill_n(labels.elements<float>(), 400, 1.0f);
  std::fill_n(others.elements<float>(), 400, 2.0f);
  refuse({}, labels,
      "register: the metric dice is given without fixed_labels and moving_labels, which it "
      "compares");
  refuse(labels, small,
      "register: moving_labels has shape [20, 19]; it must be that of moving, "
      "[20, 20]");
  refuse(labels, others, "register: fixed_labels and moving_labels have no label in common");
  others.elements<float>()[3] = 0.5f;
  refuse(labels, others, "register: moving_labels holds 0.5; labels are integers up to 16777216");
  test::expect_refusal(
      [&] { register_images(f, f, {.linear_metric = {.metric = RegisterMetric::dice}}); },
      "register: the linear metric is dice; it must be mi, ncc or mse");
}

// An image in [0, 1] of soft blobs with noise of a standard deviation.
Tensor noisy_image(const Grid& grid, double noise, std::uint32_t seed) {
  const std::vector<Blob> all = blobs(grid.rank, 3);
  Tensor result;
  image_of(grid, all, stay, result);
  for (std::int64_t i = 0; i < grid.voxels(); ++i) {
    double sum = -1.5;  // of a standard deviation of 0.5
    for (int k = 0; k < 3; ++k) sum += test::uniform(seed, 3 * i + k);
    float& value = result.elements<float>()[i];
    value = std::clamp(value / 500 + static_cast<float>(2 * noise * sum), 0.0f, 1.0f);
  }
  return result;
}

TEST(Registration, FindsTheNoiseOfAnImage) {
  for (const int rank : {2, 3}) {
    const Grid grid = grid_of(rank, {40, 37, 35}, {3, 3, 3});
    for (const double noise : {0.01, 0.03}) {
      const double found = noise_of({grid, noisy_image(grid, noise, 5), {}}, {});
      EXPECT_NEAR(found, noise, 0.1 * noise) << rank << " " << noise;
    }
    EXPECT_LT(noise_of({grid, noisy_image(grid, 0, 5), {}}, {}), 1e-3);
  }
}

TEST(Registration, SmoothsTheGradientMoreWhereImagesAreNoisy) {
  const auto fluid_of = [&](int rank, double noise, std::optional<double> given) {
    const Grid grid =
        rank == 3 ? grid_of(3, {24, 22, 20}, {4, 4, 4}) : grid_of(2, {60, 50, 1}, {2, 2, 2});
    const Tensor f = noisy_image(grid, noise, 1), m = noisy_image(grid, noise, 2);
    const RegisterOptions options{
        .stages = {RegisterStage::deformable}, .iterations = {1}, .levels = {1}, .fluid = given};
    return register_images({f, rows_of(grid.to_world)}, {m, rows_of(grid.to_world)}, options).fluid;
  };
  EXPECT_EQ(fluid_of(3, 0, {}), 3);
  EXPECT_GT(fluid_of(3, 0.01, {}), 3.05);
  EXPECT_LT(fluid_of(3, 0.01, {}), 3.8);
  EXPECT_EQ(fluid_of(3, 0.1, {}), 4);
  EXPECT_EQ(fluid_of(3, 0.1, 2.0), 2);
  // A plane has fewer voxels to average.
  EXPECT_EQ(fluid_of(2, 0, {}), 3);
  EXPECT_GT(fluid_of(2, 0.006, {}), 3.05);
  EXPECT_LT(fluid_of(2, 0.006, {}), 3.6);
  EXPECT_EQ(fluid_of(2, 0.02, {}), 4);
}

TEST(Registration, GroupsVoxelsThatFold) {
  const Grid grid = grid_of(3, {24, 20, 18}, {1, 1, 1});
  const Tensor u = allocate(grid.field_shape(), DType::f32);
  std::fill_n(u.elements<float>(), 3 * grid.voxels(), 0.0f);
  for (const std::int64_t x : {4, 18}) u.elements<float>()[3 * ((9 * 20 + 8) * 24 + x)] = 2;
  const std::vector<Box> spots = bad_spots(grid, u, {.size = grid.size}, 0.1, {});
  ASSERT_EQ(spots.size(), 2u);
  using Numbers = std::array<std::int64_t, 3>;
  EXPECT_EQ(spots[0].first, (Numbers{4, 8, 9}));
  EXPECT_EQ(spots[1].first, (Numbers{18, 8, 9}));
  for (const Box& spot : spots) EXPECT_EQ(spot.size, (Numbers{2, 1, 1}));
}

}  // namespace
}  // namespace similis
