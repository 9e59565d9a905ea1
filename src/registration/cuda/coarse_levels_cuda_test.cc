// SPDX-License-Identifier: Apache-2.0
// Linear stages and coarse levels are in f64 on both devices, so that the steps' growth of what
// rounding makes different leaves a GPU's maps and fields equal to the CPU's.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>

#include "similis/smooth.hpp"
#include "src/core/tensor/convert.h"
#include "src/core/tensor/doubles.h"
#include "src/core/tensor/memory.h"
#include "src/gpu/device.h"
#include "src/registration/cuda/fused.h"
#include "src/registration/deformable.h"
#include "src/registration/levels.h"
#include "src/registration/linear/linear.h"
#include "src/registration/test_images.h"
#include "src/smooth/smooth.h"
#include "tests/on_gpu.h"

namespace similis::registration_internal {
namespace {

// Two noisy images on different grids. Before the first step voxels meet voxels exactly where the
// grids do.
struct Pair {
  Grid grid, other;
  Tensor own_values, other_values;
  Volume fixed, moving;
  test::Array own_mask, other_mask;
  test::OnGpu fixed_there, moving_there, own_mask_there, other_mask_there;

  explicit Pair(int rank)
      : grid(grid_of(rank, {39, 35, 37}, {4, 4.2, 4.4})),
        other(grid_of(rank, {39, 37, 35}, {4, 4.2, 4.5})),
        fixed(image_of(
            grid, blobs(rank, 5), [&](const Point& p) { return waved(p, rank); }, own_values)),
        moving(image_of(
            other, blobs(rank, 5), [](const Point& p) { return p; }, other_values)),
        own_mask(mask_on(grid)),
        other_mask(mask_on(other)),
        fixed_there(with_noise(own_values, 3)),
        moving_there(with_noise(other_values, 4)),
        own_mask_there(own_mask),
        other_mask_there(other_mask) {}

  // An image of the device, and its mask if there is one.
  Image fixed_on(Device device, bool has_mask) const {
    const bool is_here = device.kind == DeviceKind::cpu;
    const TensorView mask = is_here ? TensorView(own_mask) : own_mask_there.view();
    return prepared("fixed", {is_here ? fixed.data : fixed_there.view(), fixed.to_world},
        has_mask ? mask : TensorView(), false, {});
  }
  Image moving_on(Device device, bool has_mask) const {
    const bool is_here = device.kind == DeviceKind::cpu;
    const TensorView mask = is_here ? TensorView(other_mask) : other_mask_there.view();
    return prepared("moving", {is_here ? moving.data : moving_there.view(), moving.to_world},
        has_mask ? mask : TensorView(), false, {});
  }

 private:
  static test::Array mask_on(const Grid& of) {
    Extents shape = of.image_shape(1);
    shape = Extents(
        std::span<const std::int64_t>(shape.begin() + 2, static_cast<std::size_t>(of.rank)));
    return test::make(shape, DType::u8, test::Layout::dense,
        [&](std::int64_t i) { return i % of.size[0] < 12 || i % of.size[0] > 15 ? 1 : 0; });
  }
  static const Tensor& with_noise(const Tensor& values, std::uint32_t seed) {
    for (std::int64_t i = 0; i < values.shape.count(); ++i) {
      values.elements<float>()[i] += static_cast<float>(10 * test::uniform(seed, i));
    }
    return values;
  }
};

struct Case {
  const char* name;
  int rank;
  std::vector<RegisterStage> stages;
  std::vector<MetricTerm> metrics = RegisterOptions().metrics;
  bool has_masks = false;
  std::optional<double> fluid = std::nullopt;
  double step = 0.5, min_jacobian = 0.1;
};

const MetricTerm kCorrelation{.metric = RegisterMetric::ncc, .weight = 1.3};

const Case kCases[] = {{"lncc_and_ncc", 3, {RegisterStage::deformable}},
    {"under_masks", 3, {RegisterStage::deformable}, RegisterOptions().metrics, true},
    {"windows_of_3", 3, {RegisterStage::deformable}, {{.window_size = 3}, kCorrelation}, true},
    {"windows_of_7", 3, {RegisterStage::deformable}, {{.window_size = 7}, kCorrelation}},
    {"wide_windows", 3, {RegisterStage::deformable}, {{.window_size = 9}}},
    {"wide_smoothing", 3, {RegisterStage::deformable}, RegisterOptions().metrics, false, 3.6},
    {"folds", 3, {RegisterStage::deformable}, RegisterOptions().metrics, false, 2, 0.9, 0.75},
    {"mutual_information", 3, {RegisterStage::deformable}, {{.metric = RegisterMetric::mi}}},
    {"mean_squares_2d", 2, {RegisterStage::deformable}, {{.metric = RegisterMetric::mse}}},
    {"lncc_and_ncc_2d", 2, {RegisterStage::deformable}},
    {"symmetric", 3, {RegisterStage::symmetric}}, {"symmetric_2d", 2, {RegisterStage::symmetric}}};

class CoarseLevelsCuda : public testing::TestWithParam<std::size_t> {};

TEST_P(CoarseLevelsCuda, AreTheCpus) {
  if (gpu::device_count(DeviceKind::cuda) == 0) GTEST_SKIP() << "there is no GPU";
  const Case& c = kCases[GetParam()];
  const Pair pair(c.rank);
  const RegisterOptions options{.stages = c.stages,
      .metrics = c.metrics,
      .iterations = {25, 15},
      .levels = {4, 2},
      .fluid = c.fluid,
      .step = c.step,
      .min_jacobian = c.min_jacobian,
      .tolerance = 0};
  const auto run = [&](Device device) {
    const Image fixed = pair.fixed_on(device, c.has_masks),
                moving = pair.moving_on(device, c.has_masks), none;
    DeformableResult result =
        run_deformable(c.stages.back(), {fixed, moving, none, none}, Map(), options, Watch(), {});
    result.u = on_cpu(result.u, {});
    return result;
  };
  const DeformableResult cpu = run({}), gpu = run({DeviceKind::cuda, 0});
  for (std::size_t l = 0; l < 2; ++l) {
    const RegisterLevel &own = cpu.report.levels[l], &other = gpu.report.levels[l];
    ASSERT_EQ(other.loss.size(), own.loss.size());
    for (std::size_t i = 0; i < own.loss.size(); ++i) {
      EXPECT_NEAR(other.loss[i], own.loss[i], 1e-9) << l << ' ' << i;
    }
  }
  EXPECT_EQ(gpu.repairs, cpu.repairs);
  EXPECT_EQ(cpu.repairs > 0, c.min_jacobian > 0.5);
  double difference = 0, moved = 0;
  const std::vector<double> here = to_doubles(cpu.u), there = to_doubles(gpu.u);
  for (std::size_t i = 0; i < here.size(); ++i) {
    difference = std::max(difference, std::abs(here[i] - there[i]));
    moved = std::max(moved, std::abs(here[i]));
  }
  EXPECT_GT(moved, 0.5);
  EXPECT_LT(difference, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(RegistrationCuda, CoarseLevelsCuda,
    testing::Range<std::size_t>(0, std::size(kCases)),
    [](const auto& at) { return std::string(kCases[at.param].name); });

TEST(RegistrationCuda, SmoothsGradientsOfCoarseLevelsAsTheCpuDoes) {
  if (gpu::device_count(DeviceKind::cuda) == 0) GTEST_SKIP() << "there is no GPU";
  const Device device = {DeviceKind::cuda, 0};
  for (const auto& [size, sigma] : {std::pair{std::array<std::int64_t, 3>{33, 17, 19}, 3.0},
           {{2, 3, 5}, 4.0}, {{90, 9, 2}, 2.5}, {{65, 40, 23}, 3.4}}) {
    const Grid grid = grid_of(3, size, {1, 1, 1});
    const test::Array field = test::make(grid.field_shape(), DType::f64, test::Layout::dense,
        [](std::int64_t i) { return test::uniform(3, i) - 0.5; });
    const test::OnGpu there(field);
    const SmoothOptions options{.sigma = sigma, .field = true, .padding = SmoothPadding::zeros};
    const Tensor expected = smooth(field, options),
                 work = allocate(field.shape, DType::f64, device),
                 scratch = allocate(field.shape, DType::f64, device);
    const auto memory = allocate_bytes(sizeof(cuda::State), device, {});
    cuda::State state = {};
    gpu::copy_from_cpu(memory.get(), &state, sizeof(state), device, nullptr);
    cuda::Level<double> level = {};
    for (std::size_t a = 0; a < 3; ++a) level.size[a] = static_cast<int>(size[a]);
    level.state = static_cast<cuda::State*>(memory.get());
    const std::vector<double> taps =
        smooth_internal::smooth_pass(field, {.output = field}, options).taps[0];
    cuda::launch_smoothing(level, {.number = 1, .record = 4}, taps,
        static_cast<double*>(there.view().data()), work.elements<double>(),
        scratch.elements<double>(), {});
    gpu::copy_to_cpu(&state, memory.get(), sizeof(state), device, nullptr);
    there.bring_back();
    const std::vector<double> found = to_doubles(field), known = to_doubles(expected);
    EXPECT_LT(test::relative_l2(found, known), 1e-14);
    double most = 0;
    for (std::size_t i = 0; i < found.size(); i += 3) {
      most = std::max(
          most, found[i] * found[i] + found[i + 1] * found[i + 1] + found[i + 2] * found[i + 2]);
    }
    EXPECT_NEAR(bits_as<double>(state.records[4].largest_f64), most, 1e-14 * most);
  }
}

// Others call the operations one by one.
TEST(RegistrationCuda, FusesCoarseLevelsInWindowsOf3And5) {
  if (gpu::device_count(DeviceKind::cuda) == 0) GTEST_SKIP() << "there is no GPU";
  const Pair pair(3);
  const Image fixed = shrunk(pair.fixed_on({DeviceKind::cuda, 0}, false), 8, 0.5, {}), none;
  const Map affine;
  const LevelImages images{{fixed, fixed, fixed}, {none, none, none}, affine};
  const Tensor u = allocate(fixed.grid.field_shape(), DType::f64, fixed.grid.device);
  for (const int size : {3, 5, 7, 9}) {
    const RegisterOptions options{.metrics = {{.window_size = size}, kCorrelation}};
    const DeformableSettings settings = deformable_settings(options, fixed.grid);
    EXPECT_EQ(fused_greedy_level(images, u, options, settings, {}) != nullptr, size < 7) << size;
  }
}

TEST(RegistrationCuda, LinearStagesFindTheCpusMaps) {
  if (gpu::device_count(DeviceKind::cuda) == 0) GTEST_SKIP() << "there is no GPU";
  struct Setting {
    int rank;
    MetricTerm metric;
    bool has_masks;
  };
  const MetricTerm information{.metric = RegisterMetric::mi, .num_bins = 32},
      correlation{.metric = RegisterMetric::ncc};
  for (const Setting& s : {Setting{2, information, false}, Setting{2, correlation, true},
           Setting{3, information, false}, Setting{3, information, true}}) {
    SCOPED_TRACE(std::to_string(s.rank) + (s.has_masks ? " masks" : ""));
    const Pair pair(s.rank);
    const RegisterOptions options{.start = RegisterStart::moments, .linear_metric = s.metric};
    const auto map_on = [&](Device device) {
      return run_linear(pair.fixed_on(device, s.has_masks), pair.moving_on(device, s.has_masks),
          {RegisterStage::rigid, RegisterStage::affine}, options, Watch(), {})
          .map;
    };
    const Map cpu = map_on({}), gpu = map_on({DeviceKind::cuda, 0});
    for (const Point& p : {Point{70, 0, 0}, Point{0, 70, 0}, Point{0, 0, 70}}) {
      const Point apart = cpu(p) - gpu(p);
      EXPECT_LT(std::hypot(apart[0], apart[1], apart[2]), 1e-6);
    }
  }
}

}  // namespace
}  // namespace similis::registration_internal
