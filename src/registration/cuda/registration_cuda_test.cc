// SPDX-License-Identifier: Apache-2.0
// Registration on the GPU beside that on the CPU: the same maps to 0.02 voxel, the same bits in
// every run, no folds; each pass against the CPU's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "src/core/tensor/memory.h"
#include "src/gpu/device.h"
#include "src/registration/deformable.h"
#include "src/registration/guard.h"
#include "src/registration/levels.h"
#include "src/registration/options.h"
#include "src/registration/passes.h"
#include "src/registration/test_images.h"
#include "tests/on_gpu.h"
#include "tests/refusal.h"

namespace similis::registration_internal {
namespace {

constexpr Device kGpu = {DeviceKind::cuda, 0};

#define SKIP_WITHOUT_A_GPU() \
  if (gpu::device_count(DeviceKind::cuda) == 0) GTEST_SKIP() << "there is no GPU"

// Fixed and moving on the CPU, and their copies on the GPU.
struct Pair {
  Grid grid;
  Tensor own, other;
  Volume fixed, moving;
  test::OnGpu fixed_on_gpu, moving_on_gpu;

  explicit Pair(const Grid& of, std::uint32_t seed)
      : grid(of),
        fixed(image_of(
            grid, blobs(of.rank, seed), [&](const Point& p) { return waved(p, of.rank); }, own)),
        moving(image_of(
            grid, blobs(of.rank, seed), [](const Point& p) { return p; }, other)),
        fixed_on_gpu(fixed.data),
        moving_on_gpu(moving.data) {}

  Registration on_cpu(const RegisterOptions& options) const {
    return register_images(fixed, moving, options);
  }
  // Its arrays brought to the CPU.
  Registration on_gpu(const RegisterOptions& options, const Execution& exec = {}) const {
    Registration r = register_images({fixed_on_gpu.view(), fixed.to_world},
        {moving_on_gpu.view(), moving.to_world}, options, exec);
    EXPECT_EQ(r.warped.device, kGpu);
    r.warped = registration_internal::on_cpu(r.warped, exec);
    if (r.displacement.empty()) return r;
    r.displacement = registration_internal::on_cpu(r.displacement, exec);
    r.inverse_displacement = registration_internal::on_cpu(r.inverse_displacement, exec);
    return r;
  }
};

// The mean distance between what two maps do to the voxels, in voxels of the grid.
double mean_difference(const Grid& grid, const Registration& a, const Registration& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < grid.voxels(); ++i) {
    const Point voxel = {static_cast<double>(i % grid.size[0]),
        static_cast<double>(i / grid.size[0] % grid.size[1]),
        static_cast<double>(i / grid.size[0] / grid.size[1])};
    const auto moved = [&](const Registration& r) {
      Point p = grid.to_world(voxel);
      for (int c = 0; c < grid.rank && !r.displacement.empty(); ++c) {
        p[static_cast<std::size_t>(c)] +=
            static_cast<double>(r.displacement.elements<float>()[i * grid.rank + c]);
      }
      return map_of(r.affine)(p);
    };
    const Point d = moved(a) - moved(b);
    sum += std::hypot(d[0], d[1], d[2]);
  }
  return sum / static_cast<double>(grid.voxels()) / grid.smallest_spacing();
}

std::vector<float> floats(const Tensor& tensor) {
  return {tensor.elements<float>(), tensor.elements<float>() + tensor.shape.count()};
}

struct Case {
  const char* name;
  int rank;
  RegisterOptions options;
};

std::vector<Case> cases() {
  using S = RegisterStage;
  std::vector<Case> all = {{"linear", 3, {.stages = {S::rigid, S::affine}}},
      {"linear_2d", 2, {.stages = {S::rigid, S::similarity, S::affine}}},
      {"greedy", 3, {.iterations = {12, 8}, .levels = {2, 1}}}, {"greedy_2d", 2, {}},
      {"greedy_window_7", 3, {.metrics = {{.weight = 0.7, .window_size = 7}}, .levels = {1}}},
      {"greedy_mi", 3,
          {.metrics = {{.metric = RegisterMetric::mi}}, .iterations = {6, 4}, .levels = {2, 1}}},
      {"greedy_mse", 2,
          {.metrics = {{.metric = RegisterMetric::mse}}, .iterations = {10}, .levels = {1}}},
      {"symmetric", 3,
          {.stages = {S::rigid, S::symmetric}, .iterations = {5, 3}, .levels = {2, 1}}},
      {"symmetric_2d", 2, {.stages = {S::symmetric}, .iterations = {6}, .levels = {1}}}};
  for (Case& each : all) {
    if (each.options.iterations.empty() && !each.options.levels.empty()) {
      each.options.iterations = {15};
    }
  }
  return all;
}

class OnBothDevices : public testing::TestWithParam<std::size_t> {};

TEST_P(OnBothDevices, FindsTheSameMapWithoutFolds) {
  SKIP_WITHOUT_A_GPU();
  const Case c = cases()[GetParam()];
  const Pair pair(grid_of(c.rank, {37, 33, 30}, {4, 4.2, 4.4}), 5);
  const Registration cpu = pair.on_cpu(c.options), gpu = pair.on_gpu(c.options);
  EXPECT_LT(mean_difference(pair.grid, cpu, gpu), 0.02);
  // Intensities reach 200.
  EXPECT_LT(test::relative_l2(to_doubles(gpu.warped), to_doubles(cpu.warped)), 0.01);
  ASSERT_EQ(gpu.stages.size(), cpu.stages.size());
  EXPECT_NEAR(gpu.overlap, cpu.overlap, 1e-3);
  if (cpu.displacement.empty()) return;
  EXPECT_GE(corner_minimum(pair.grid, gpu.displacement), 0.0999);
  EXPECT_GT(corner_minimum(pair.grid, gpu.inverse_displacement), 0);
  EXPECT_NEAR(gpu.inverse_error_mm.mean, cpu.inverse_error_mm.mean, 0.01);
  EXPECT_NEAR(gpu.inverse_error_mm.p99, cpu.inverse_error_mm.p99, 0.1);
  const RegisterLevel &own = gpu.stages.back().levels.back(),
                      &other = cpu.stages.back().levels.back();
  EXPECT_NEAR(own.loss.back(), other.loss.back(), 0.002);
  EXPECT_EQ(own.loss.size() - own.min_jacobian.size(), 0u);
}

TEST_P(OnBothDevices, HasTheSameBitsInEveryRun) {
  SKIP_WITHOUT_A_GPU();
  const Case c = cases()[GetParam()];
  const Pair pair(grid_of(c.rank, {29, 26, 31}, {5, 5, 5}), 6);
  const Registration once = pair.on_gpu(c.options), again = pair.on_gpu(c.options);
  EXPECT_EQ(once.affine, again.affine);
  EXPECT_EQ(floats(once.warped), floats(again.warped));
  if (once.displacement.empty()) return;
  EXPECT_EQ(floats(once.displacement), floats(again.displacement));
  EXPECT_EQ(floats(once.inverse_displacement), floats(again.inverse_displacement));
}

INSTANTIATE_TEST_SUITE_P(RegistrationCuda, OnBothDevices,
    testing::Range<std::size_t>(0, cases().size()),
    [](const auto& at) { return std::string(cases()[at.param].name); });

// Voxels that a mask leaves out add nothing, and two channels both count.
TEST(RegistrationCuda, TakesMasksAndChannels) {
  SKIP_WITHOUT_A_GPU();
  const Grid grid = grid_of(3, {34, 30, 32}, {4, 4, 4});
  const Pair pair(grid, 7);
  const Extents shape = {32, 30, 34};
  const test::Array mask = test::make(shape, DType::u8, test::Layout::dense, [](std::int64_t i) {
    return std::abs(i % 34 - 12) > 4 || std::abs(i / 34 % 30 - 15) > 4 ? 1 : 0;
  });
  const test::OnGpu mask_on_gpu(mask);
  RegisterOptions options{.stages = {RegisterStage::rigid, RegisterStage::deformable},
      .start = RegisterStart::identity,
      .iterations = {6, 4},
      .levels = {2, 1}};
  options.fixed_mask = options.moving_mask = mask;
  const Registration cpu = pair.on_cpu(options);
  options.fixed_mask = options.moving_mask = mask_on_gpu.view();
  const Registration gpu = pair.on_gpu(options);
  EXPECT_LT(mean_difference(grid, cpu, gpu), 0.02);
  for (std::int64_t i = 0; i < grid.voxels(); ++i) {
    if (mask.elements<std::uint8_t>()[i] == 0) {
      pair.own.elements<float>()[i] = pair.other.elements<float>()[i] = std::nanf("");
    }
  }
  const test::OnGpu own(pair.own), other(pair.other);
  const Registration filled = register_images(
      {own.view(), pair.fixed.to_world}, {other.view(), pair.moving.to_world}, options);
  EXPECT_EQ(floats(on_cpu(filled.displacement, {})), floats(gpu.displacement));

  const Extents two = {1, 2, 32, 30, 34};
  const auto doubled = [&](const Tensor& values) {
    return test::make(two, DType::f32, test::Layout::dense, [&](std::int64_t i) {
      const double value = static_cast<double>(values.elements<float>()[i % grid.voxels()]);
      return i < grid.voxels() ? value : 3 * value + 20 * test::uniform(4, i);
    });
  };
  const Pair fresh(grid, 7);
  const test::Array both = doubled(fresh.own), others = doubled(fresh.other);
  const test::OnGpu both_on_gpu(both), others_on_gpu(others);
  const RegisterOptions plain{
      .stages = {RegisterStage::deformable}, .iterations = {4}, .levels = {2}};
  const Registration by_cpu =
      register_images({both, fresh.fixed.to_world}, {others, fresh.moving.to_world}, plain);
  Registration by_gpu = register_images({both_on_gpu.view(), fresh.fixed.to_world},
      {others_on_gpu.view(), fresh.moving.to_world}, plain);
  by_gpu.displacement = on_cpu(by_gpu.displacement, {});
  EXPECT_LT(mean_difference(grid, by_cpu, by_gpu), 0.02);
}

TEST(RegistrationCuda, TakesLabels) {
  SKIP_WITHOUT_A_GPU();
  const Pair pair(grid_of(3, {34, 30, 32}, {4, 4, 4}), 7);
  const auto labels_of = [](const Tensor& image) {
    return test::make({32, 30, 34}, DType::u8, test::Layout::dense,
        [&](std::int64_t i) { return std::floor(image.elements<float>()[i] / 40); });
  };
  const test::Array own = labels_of(pair.own), other = labels_of(pair.other);
  const test::OnGpu own_on_gpu(own), other_on_gpu(other);
  for (const RegisterStage stage : {RegisterStage::deformable, RegisterStage::symmetric}) {
    RegisterOptions options{.stages = {stage},
        .start = RegisterStart::identity,
        .metrics = {{.metric = RegisterMetric::dice}, {.metric = RegisterMetric::ncc}},
        .iterations = {6, 4},
        .levels = {2, 1},
        .fixed_labels = own,
        .moving_labels = other};
    const Registration cpu = pair.on_cpu(options);
    options.fixed_labels = own_on_gpu.view();
    options.moving_labels = other_on_gpu.view();
    EXPECT_LT(mean_difference(pair.grid, cpu, pair.on_gpu(options)), 0.02);
  }
}

TEST(RegistrationCuda, EndsWhereTheCallerSaysSo) {
  SKIP_WITHOUT_A_GPU();
  const Pair pair(grid_of(3, {26, 25, 27}, {5, 5, 5}), 9);
  RegisterOptions options{
      .stages = {RegisterStage::deformable}, .iterations = {30, 20}, .levels = {2, 1}};
  int calls = 0;
  options.progress = [&](const RegisterProgress& at) {
    EXPECT_EQ(at.iteration, calls);
    return ++calls < 5;
  };
  const Registration r = pair.on_gpu(options);
  EXPECT_EQ(calls, 5);
  EXPECT_STREQ(r.stages.at(0).levels.at(0).stopped, "callback");
  EXPECT_GE(corner_minimum(pair.grid, r.displacement), 0.0999);
}

TEST(RegistrationCuda, RefusesImagesOnTwoDevices) {
  SKIP_WITHOUT_A_GPU();
  const Pair pair(grid_of(2, {20, 21, 1}, {5, 5, 5}), 9);
  test::expect_refusal(
      [&] {
        register_images(
            {pair.fixed_on_gpu.view(), pair.fixed.to_world}, pair.moving, RegisterOptions());
      },
      "register: fixed is on cuda:0 but moving on cpu; they must be on one device");
}

// The bytes that an allocator holds, and the most that it held.
struct Held {
  std::size_t now = 0, most = 0;
};
void* take(void* held, std::size_t bytes, Device device, void* stream) {
  auto& own = *static_cast<Held*>(held);
  own.now += bytes;
  own.most = std::max(own.most, own.now);
  return gpu::device_functions(device.kind)->allocate(bytes, device, stream);
}
void give(void* held, void* memory, std::size_t bytes, Device device, void* stream) {
  static_cast<Held*>(held)->now -= bytes;
  gpu::device_functions(device.kind)->release(memory, device, stream);
}

TEST(RegistrationCuda, HoldsThreeFieldsAndThreeImagesAtMost) {
  SKIP_WITHOUT_A_GPU();
  const Pair pair(grid_of(3, {64, 60, 56}, {3, 3, 3}), 5);
  const test::Array mask = test::make({56, 60, 64}, DType::u8, test::Layout::dense,
      [](std::int64_t i) { return i % 64 < 30 || i % 64 > 36 ? 1 : 0; });
  const test::OnGpu mask_there(mask);
  // 48 B, and what blocks leave for the sums. A mask takes 4 B, and the curvature under it 0.4.
  for (const auto& [has_mask, most] : {std::pair{false, 50.0}, {true, 54.5}}) {
    Held held;
    const Execution exec{.queue = Queue::cuda(nullptr), .allocator = {take, give, &held}};
    {
      RegisterOptions options{.stages = {RegisterStage::deformable},
          .start = RegisterStart::identity,
          .iterations = {2, 2},
          .levels = {2, 1}};
      if (has_mask) options.fixed_mask = mask_there.view();
      const Registration r = pair.on_gpu(options, exec);
      EXPECT_FALSE(r.inverse_displacement.empty());
    }
    EXPECT_EQ(held.now, 0u);
    EXPECT_LT(static_cast<double>(held.most) / static_cast<double>(pair.grid.voxels()), most);
  }
}

// A level of the greedy stage by fused kernels and by the CPU: fields, losses and determinants.
TEST(RegistrationCuda, FusedIterationsFollowTheCpus) {
  SKIP_WITHOUT_A_GPU();
  struct Setting {
    std::array<std::int64_t, 3> size;
    int window_size;
    bool has_masks;
    double step, min_jacobian;
    int iterations;
    double fluid = 3;  // 3.6: a radius between those that the compiler knows
    double damping = 0;
  };
  // The fourth folds without its guard.
  const Setting settings_of[] = {{{37, 33, 41}, 5, false, 0.5, 0.1, 12},
      {{37, 33, 41}, 3, true, 0.5, 0.1, 4}, {{35, 12, 9}, 7, false, 1, 0.1, 4},
      {{30, 26, 28}, 5, false, 1, 0.75, 8}, {{37, 33, 41}, 5, false, 0.5, 0.1, 6, 3.6},
      {{37, 33, 41}, 5, true, 0.5, 0.1, 8, 3, 1}, {{34, 36, 29}, 5, false, 1, 0.75, 8, 3, 2}};
  for (const Setting& setting : settings_of) {
    SCOPED_TRACE(setting.window_size + 100 * setting.iterations);
    const Grid grid = grid_of(3, setting.size, {3, 3.1, 3.2}),
               other = grid_of(3, {40, 31, 38}, {2.9, 3.3, 3.4});
    Tensor own_values, other_values;
    const Volume f = image_of(
        grid, blobs(3, 5), [](const Point& p) { return waved(p, 3); }, own_values);
    const Volume m = image_of(
        other, blobs(3, 5), [](const Point& p) { return p; }, other_values);
    const auto mask_of = [&](const Grid& of) {
      const Extents image = of.image_shape(1);
      return test::make({image[2], image[3], image[4]}, DType::u8, test::Layout::dense,
          [&](std::int64_t i) { return i % of.size[0] < 12 || i % of.size[0] > 17 ? 1 : 0; });
    };
    const test::Array own_mask = mask_of(grid), other_mask = mask_of(other);
    const test::OnGpu f_there(f.data), m_there(m.data), own_mask_there(own_mask),
        other_mask_there(other_mask);
    const Map affine = turned(3, 7, {2, -1, 3});
    const RegisterOptions options{.stages = {RegisterStage::deformable},
        .metrics = {{.weight = 0.8, .window_size = setting.window_size},
            {.metric = RegisterMetric::ncc, .weight = 1.2}},
        .iterations = {setting.iterations},
        .levels = {1},
        .fluid = setting.fluid,
        .step = setting.step,
        .min_jacobian = setting.min_jacobian,
        .tolerance = 0};
    DeformableSettings settings = deformable_settings(options, grid);
    settings.damping = setting.damping;
    const auto run = [&](const Volume& fixed, const Volume& moving, const TensorView& a,
                         const TensorView& b, RegisterLevel& report, DeformableResult& result) {
      const bool has_masks = setting.has_masks;
      const Image own = prepared("fixed", fixed, has_masks ? a : TensorView(), false, {}),
                  moved = prepared("moving", moving, has_masks ? b : TensorView(), false, {});
      const LevelImages images{{own, own, moved}, {}, affine};
      const Tensor u = allocate(own.grid.field_shape(), DType::f32, own.grid.device);
      fill(u.device, u.shape.count(), 0, static_cast<float*>(u.data()), {});
      const Execution exec;
      const auto level = greedy_level(images, u, options, settings, exec);
      const Watch watch;
      level->run(
          {RegisterStage::deformable, 1, setting.iterations, options, watch}, report, result);
      return on_cpu(level->field(), {});
    };
    RegisterLevel by_cpu, by_gpu;
    DeformableResult of_cpu, of_gpu;
    const Tensor here = run(f, m, own_mask, other_mask, by_cpu, of_cpu);
    const Tensor there = run({f_there.view(), f.to_world}, {m_there.view(), m.to_world},
        own_mask_there.view(), other_mask_there.view(), by_gpu, of_gpu);
    ASSERT_EQ(by_gpu.loss.size(), by_cpu.loss.size());
    ASSERT_EQ(by_gpu.min_jacobian.size(), by_cpu.min_jacobian.size());
    EXPECT_STREQ(by_gpu.stopped, by_cpu.stopped);
    for (std::size_t i = 0; i < by_cpu.loss.size(); ++i) {
      EXPECT_NEAR(by_gpu.loss[i], by_cpu.loss[i], 2e-4) << i;
      if (i < by_cpu.min_jacobian.size()) {
        EXPECT_NEAR(by_gpu.min_jacobian[i], by_cpu.min_jacobian[i], 0.01) << i;
      }
    }
    EXPECT_EQ(of_gpu.repairs > 0, of_cpu.repairs > 0);
    EXPECT_EQ(of_cpu.repairs > 0, setting.min_jacobian > 0.5);
    double difference = 0, moved = 0;
    for (std::int64_t i = 0; i < here.shape.count(); ++i) {
      const auto a = static_cast<double>(here.elements<float>()[i]),
                 b = static_cast<double>(there.elements<float>()[i]);
      difference += std::abs(a - b) / static_cast<double>(grid.voxels());
      moved += std::abs(a) / static_cast<double>(grid.voxels());
    }
    EXPECT_GT(moved, 0.3);
    EXPECT_LT(difference, 0.01);
  }
}

TEST(RegistrationCuda, FindsWhatTheCpuFindsInValues) {
  SKIP_WITHOUT_A_GPU();
  Grid grid = grid_of(3, {37, 19, 23}, {1, 1, 1});
  const test::Array values =
      test::make(grid.image_shape(1), DType::f32, test::Layout::dense, [](std::int64_t i) {
        return i % 5 == 0 ? -2 : std::floor(50 * test::uniform(3, i)) / 7 - 2;
      });
  const test::Array mask = test::make(grid.image_shape(1), DType::f32, test::Layout::dense,
      [](std::int64_t i) { return i % 3 == 0 ? 0 : 1; });
  const test::OnGpu values_on_gpu(values), mask_on_gpu(mask);
  Grid there = grid;
  there.device = kGpu;
  const auto* const v = static_cast<const float*>(values_on_gpu.view().data());
  const auto* const m = static_cast<const float*>(mask_on_gpu.view().data());
  for (const bool has_mask : {false, true}) {
    const float* const own_mask = has_mask ? mask.elements<float>() : nullptr;
    const float* const mask_there = has_mask ? m : nullptr;
    const Spread own = spread(GridRows(grid), values.elements<float>(), own_mask, {}),
                 found = spread(GridRows(there), v, mask_there, {});
    EXPECT_EQ(found.count, own.count);
    EXPECT_EQ(found.lowest, own.lowest);
    EXPECT_EQ(found.least, own.least);
    EXPECT_EQ(found.most, own.most);
    for (std::int64_t n = 0; n < own.count - own.lowest; n += n < 40 ? 1 : 97) {
      const Neighbours here =
          nth_above(GridRows(grid), values.elements<float>(), own_mask, own.least, n, {});
      const Neighbours other = nth_above(GridRows(there), v, mask_there, own.least, n, {});
      ASSERT_EQ(other.value, here.value) << n;
      ASSERT_EQ(other.next, here.next) << n;
    }
  }
  const Mass here = mass(GridRows(grid), values.elements<float>(), {}),
             other = mass(GridRows(there), v, {});
  EXPECT_NEAR(other.sum, here.sum, 1e-9 * std::abs(here.sum));
  for (std::size_t a = 0; a < 3; ++a) EXPECT_NEAR(other.first[a], here.first[a], 1e-6);
}

TEST(RegistrationCuda, GuardsAndMeasuresFieldsAsTheCpuDoes) {
  SKIP_WITHOUT_A_GPU();
  for (const int rank : {2, 3}) {
    const Grid grid = grid_of(rank, {40, 30, 26}, {1, 1, 1});
    const test::Array u = test::make(grid.field_shape(), DType::f32, test::Layout::dense,
        [](std::int64_t i) { return 0.5 * test::uniform(2, i); });
    u.elements<float>()[rank * (15 * 40 + 20)] = 2.5f;
    const test::OnGpu on_gpu(u);
    Grid there = grid;
    there.device = kGpu;
    auto* const v = static_cast<float*>(on_gpu.view().data());
    const Determinants own = corner_determinants(GridRows(grid), u.elements<float>(),
                           {.size = grid.size}, 0.1, nullptr, {}),
                       found = corner_determinants(
                           GridRows(there), v, {.size = grid.size}, 0.1, nullptr, {});
    EXPECT_NEAR(found.least, own.least, 1e-5);
    EXPECT_EQ(found.bad, own.bad);
    EXPECT_EQ(found.around.first, own.around.first);
    EXPECT_EQ(found.around.size, own.around.size);
    EXPECT_NEAR(largest_square(GridRows(there), v, {}),
        largest_square(GridRows(grid), u.elements<float>(), {}), 1e-5);
    const RegisterSummary here = lengths(GridRows(grid), u.elements<float>(), {}),
                          other = lengths(GridRows(there), v, {});
    EXPECT_NEAR(other.mean, here.mean, 1e-6);
    EXPECT_NEAR(other.p99, here.p99, 1e-6);
    EXPECT_NEAR(other.max, here.max, 1e-6);
    const Tensor field(on_gpu.view(), nullptr);
    const Guarded by_cpu = guard(grid, u, 0.1, {}), by_gpu = guard(there, field, 0.1, {});
    EXPECT_EQ(by_gpu.passed, by_cpu.passed);
    EXPECT_EQ(by_gpu.repaired, by_cpu.repaired);
    const std::vector<double> repaired = to_doubles(u);
    on_gpu.bring_back();
    EXPECT_LT(test::relative_l2(to_doubles(u), repaired), 1e-4);
  }
}

}  // namespace
}  // namespace similis::registration_internal
