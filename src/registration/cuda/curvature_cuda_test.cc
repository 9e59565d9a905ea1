// SPDX-License-Identifier: Apache-2.0
// The passes of damped Gauss-Newton steps on a GPU beside the CPU's.
#include <gtest/gtest.h>

#include "src/gpu/device.h"
#include "src/registration/cuda/curvature.h"
#include "src/registration/passes.h"
#include "src/registration/test_images.h"
#include "tests/on_gpu.h"

namespace similis::registration_internal {
namespace {

constexpr Device kGpu = {DeviceKind::cuda, 0};

// Columns that end between two planes of matrices.
TEST(CurvatureCuda, PreconditionsFieldsAsTheCpuDoes) {
  if (gpu::device_count(DeviceKind::cuda) == 0) GTEST_SKIP() << "there is no GPU";
  for (const std::array<std::int64_t, 3> size :
      {std::array<std::int64_t, 3>{37, 33, 30}, {33, 10, 21}, {2, 3, 2}}) {
    Grid grid = grid_of(3, size, {1, 1, 1}), there = grid;
    there.device = kGpu;
    const auto image = [&](std::uint32_t seed) {
      return test::make(grid.image_shape(1), DType::f32, test::Layout::dense,
          [=](std::int64_t i) { return test::uniform(seed, i); });
    };
    const test::Array values = image(1), square = image(2), mean = image(3), out = image(4);
    const test::Array mask = test::make(grid.image_shape(1), DType::f32, test::Layout::dense,
        [](std::int64_t i) { return i % 31 == 0 ? 0 : 1; });
    const test::OnGpu values_there(values), square_there(square), mean_there(mean), out_there(out),
        mask_there(mask);
    const auto elements = [](const test::OnGpu& of) {
      return static_cast<float*>(of.view().data());
    };
    for (int a = 0; a < 3; ++a) {
      edge_products(GridRows(there),
          {elements(values_there), elements(mean_there), elements(square_there),
              elements(mask_there)},
          a, (a + 1) % 3, elements(out_there), {});
      edge_products(GridRows(grid),
          {values.elements<float>(), mean.elements<float>(), square.elements<float>(),
              mask.elements<float>()},
          a, (a + 1) % 3, out.elements<float>(), {});
      const std::vector<double> own = to_doubles(out);
      out_there.bring_back();
      EXPECT_LT(test::relative_l2(to_doubles(out), own), 1e-6);
    }
    Grid coarse = grid;
    coarse.size = curvature_size(grid.size);
    const std::int64_t count = coarse.voxels();
    // B·Bᵀ of numbers of one size.
    const test::Array h =
        test::make(coarse.image_shape(6), DType::f32, test::Layout::dense, [&](std::int64_t i) {
          constexpr int kAxes[6][2] = {{0, 0}, {1, 1}, {2, 2}, {0, 1}, {0, 2}, {1, 2}};
          double sum = 0;
          for (int k = 0; k < 3; ++k) {
            const auto b = [&](int row) {
              return test::uniform(5, 9 * (i % count) + 3 * row + k) - 0.3;
            };
            sum += b(kAxes[i / count][0]) * b(kAxes[i / count][1]);
          }
          return sum;
        });
    const test::Array field = test::make(grid.field_shape(), DType::f32, test::Layout::dense,
        [](std::int64_t i) { return test::uniform(6, i) - 0.5; });
    const test::OnGpu h_there(h), field_there(field);
    const std::vector<double> before = to_doubles(field);
    precondition(GridRows(there), elements(h_there), elements(field_there), {});
    precondition(GridRows(grid), h.elements<float>(), field.elements<float>(), {});
    const std::vector<double> moved = to_doubles(field);
    field_there.bring_back();
    EXPECT_LT(test::relative_l2(to_doubles(field), moved), 1e-6);
    EXPECT_GT(test::relative_l2(moved, before), 0.1);
    cuda::launch_restoration(GridRows(there), elements(h_there), elements(field_there), {}, {});
    field_there.bring_back();
    EXPECT_LT(test::relative_l2(to_doubles(field), before), 1e-5);
  }
}

// Behind the last iteration of a batch nothing moves, and the largest vector is that of the result.
TEST(CurvatureCuda, StopsAtTheGateAndFindsTheLargestVector) {
  if (gpu::device_count(DeviceKind::cuda) == 0) GTEST_SKIP() << "there is no GPU";
  Grid grid = grid_of(3, {45, 22, 19}, {1, 1, 1}), there = grid, coarse = grid;
  there.device = kGpu;
  coarse.size = curvature_size(grid.size);
  const test::Array q = test::make(coarse.image_shape(6), DType::f32, test::Layout::dense,
      [&](std::int64_t i) { return i < 3 * coarse.voxels() ? test::uniform(3, i) : 0; });
  const test::Array field = test::make(grid.field_shape(), DType::f32, test::Layout::dense,
      [](std::int64_t i) { return test::uniform(6, i) - 0.5; });
  const test::Array words =
      test::make({2}, DType::f32, test::Layout::dense, [](std::int64_t) { return 0; });
  const std::vector<double> before = to_doubles(field);
  const test::OnGpu q_there(q), field_there(field), words_there(words);
  auto* const numbers = static_cast<int*>(words_there.view().data());
  const int limit = 4;
  gpu::copy_from_cpu(numbers, &limit, sizeof(limit), kGpu, nullptr);
  const auto run = [&](auto launch, int number) {
    launch(GridRows(there), static_cast<const float*>(q_there.view().data()),
        static_cast<float*>(field_there.view().data()),
        smooth_internal::Gate{.limit = numbers,
            .number = number,
            .largest = reinterpret_cast<unsigned*>(numbers + 1)},
        Execution());
    field_there.bring_back();
    words_there.bring_back();
  };
  for (const auto& launch : {cuda::launch_precondition, cuda::launch_restoration}) {
    run(launch, 5);
    EXPECT_EQ(to_doubles(field), before);
    EXPECT_EQ(words.elements<float>()[1], 0);
  }
  run(cuda::launch_precondition, 4);
  EXPECT_NE(to_doubles(field), before);
  EXPECT_NEAR(static_cast<double>(words.elements<float>()[1]),
      largest_square(GridRows(grid), field.elements<float>(), {}), 1e-6);
}

}  // namespace
}  // namespace similis::registration_internal
