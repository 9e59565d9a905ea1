// SPDX-License-Identifier: Apache-2.0
// Damped Gauss-Newton steps: their matrices, and what they do to a field.
#include "src/registration/curvature/preconditioner.h"

#include <gtest/gtest.h>

#include <cmath>

#include "src/registration/curvature/formula.h"
#include "src/registration/test_images.h"

namespace similis::registration_internal {
namespace {

// On the CPU.
Image image_by(const Grid& grid, auto value) {
  Image image{.grid = grid, .values = {}, .mask = {}};
  image.values = image.allocated(1, {});
  for (std::int64_t i = 0; i < grid.voxels(); ++i) {
    const Point at = {static_cast<double>(i % grid.size[0]),
        static_cast<double>(i / grid.size[0] % grid.size[1]),
        static_cast<double>(i / grid.size[0] / grid.size[1])};
    image.values.elements<float>()[i] = static_cast<float>(value(at));
  }
  return image;
}

Tensor field_on(const Grid& grid) {
  const Tensor field = allocate(grid.field_shape(), DType::f32);
  for (std::int64_t i = 0; i < field.shape.count(); ++i) {
    field.elements<float>()[i] = static_cast<float>(test::uniform(7, i) - 0.5);
  }
  return field;
}

TEST(Preconditioner, SolvesWhatItIsMadeOf) {
  for (std::int64_t seed = 0; seed < 200; ++seed) {
    const auto b = [&](int row, int k) {
      return std::pow(10, seed % 4) * (test::uniform(9, 9 * seed + 3 * row + k) - 0.4);
    };
    constexpr int kAxes[6][2] = {{0, 0}, {1, 1}, {2, 2}, {0, 1}, {0, 2}, {1, 2}};
    float q[6];
    for (int k = 0; k < 6; ++k) {
      double sum = 0;
      for (int i = 0; i < 3; ++i) sum += b(kAxes[k][0], i) * b(kAxes[k][1], i);
      q[k] = static_cast<float>(sum);
    }
    const double g[3] = {0.3, -0.7, 0.2};
    float v[3] = {0.3f, -0.7f, 0.2f};
    solve_damped(q, v);
    const double own[3] = {v[0], v[1], v[2]};
    const double back[3] = {own[0] + q[0] * own[0] + q[3] * own[1] + q[4] * own[2],
        own[1] + q[3] * own[0] + q[1] * own[1] + q[5] * own[2],
        own[2] + q[4] * own[0] + q[5] * own[1] + q[2] * own[2]};
    for (int a = 0; a < 3; ++a) EXPECT_NEAR(back[a], g[a], 1e-6 * std::pow(100, seed % 4)) << seed;
    EXPECT_LE(std::hypot(own[0], own[1], own[2]), std::hypot(g[0], g[1], g[2]) * 1.00001);
  }
  // Not positive semidefinite, as rounding may leave it: no step is longer than it came.
  float v[3] = {1, 2, 3};
  solve_damped({-5, -5, -5, 0, 0, 0}, v);
  EXPECT_EQ(v[0], 1);
  EXPECT_EQ(v[2], 3);
}

// Edges across x alone: steps across them are shortened, others are not, and by much more where
// edges are than elsewhere.
TEST(Preconditioner, ShortensStepsAcrossEdges) {
  const Grid grid = grid_of(3, {61, 18, 22}, {2, 2, 2});
  const Image image = image_by(
      grid, [](const Point& at) { return at[0] < 30 ? 0.5 + 0.4 * std::sin(at[0]) : 0.5; });
  const Tensor q = preconditioner(image, 3, 1, {});
  ASSERT_FALSE(q.empty());
  const Tensor field = field_on(grid), before = field_on(grid);
  precondition(GridRows(grid), q.elements<float>(), field.elements<float>(), {});
  for (std::int64_t i = 0; i < grid.voxels(); ++i) {
    const float *const own = field.elements<float>() + 3 * i, *const old =
                                                                  before.elements<float>() + 3 * i;
    EXPECT_FLOAT_EQ(own[1], old[1]);
    EXPECT_FLOAT_EQ(own[2], old[2]);
    const std::int64_t x = i % 61;
    if (x > 4 && x < 20) {
      EXPECT_LT(std::abs(own[0]), 0.5f * std::abs(old[0]));
    } else if (x > 46) {
      EXPECT_FLOAT_EQ(own[0], old[0]);
    }
  }
}

TEST(Preconditioner, IsEmptyWhereTheImageShowsNothing) {
  const Grid grid = grid_of(3, {20, 21, 19}, {2, 2, 2});
  EXPECT_TRUE(preconditioner(image_by(grid, [](const Point&) { return 0.5; }), 3, 1, {}).empty());
}

// Voxels that a mask leaves out, and its rim, are no edges.
TEST(Preconditioner, DoesNotSeeWhatAMaskLeavesOut) {
  const Grid grid = grid_of(3, {24, 25, 23}, {2, 2, 2});
  const auto show = [](const Point& at) { return 0.5 + 0.2 * std::sin(0.7 * at[1]); };
  const auto is_masked = [](const Point& at) { return at[0] >= 9 && at[0] < 15; };
  Image image = image_by(grid, [&](const Point& at) { return is_masked(at) ? 0 : show(at); });
  image.mask = image_by(grid, [&](const Point& at) { return is_masked(at) ? 0 : 1; }).values;
  const Tensor q = preconditioner(image, 2, 1, {});
  Grid coarse = grid;
  coarse.size = curvature_size(grid.size);
  const float* const maps = q.elements<float>();
  for (std::int64_t i = 0; i < coarse.voxels(); ++i) {
    EXPECT_NEAR(maps[i], 0, 1e-5);                        // along x
    EXPECT_NEAR(maps[i + 3 * coarse.voxels()], 0, 1e-5);  // x and y
  }
}

TEST(Preconditioner, HasTheSameBitsForAnyNumberOfThreads) {
  const Grid grid = grid_of(3, {37, 30, 26}, {2, 2, 2});
  const Image image = image_by(grid, [](const Point& at) {
    return 0.5 + 0.2 * std::sin(at[0] + 0.3 * at[1]) * std::cos(0.5 * at[2]);
  });
  std::vector<double> q, moved;
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    Execution exec;
    exec.runner = pool.runner();
    const Tensor found = preconditioner(image, 3, 1, exec), field = field_on(grid);
    precondition(GridRows(grid), found.elements<float>(), field.elements<float>(), exec);
    if (threads == 1) {
      q = to_doubles(found);
      moved = to_doubles(field);
    }
    EXPECT_EQ(to_doubles(found), q);
    EXPECT_EQ(to_doubles(field), moved);
  }
}

}  // namespace
}  // namespace similis::registration_internal
