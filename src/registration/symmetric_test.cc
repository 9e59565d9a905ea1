// SPDX-License-Identifier: Apache-2.0
// The symmetric stage: it takes both images alike, and neither of its fields folds.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "similis/warp.hpp"
#include "src/registration/exponential.h"
#include "src/registration/guard.h"
#include "src/registration/levels.h"
#include "src/registration/test_images.h"
#include "tests/refusal.h"

namespace similis::registration_internal {
namespace {

const std::vector<RegisterStage> kSymmetric = {RegisterStage::symmetric};

Point unmoved(const Point& p) { return p; }

// |u(x + w) + w| of two fields in voxels, its mean over the grid.
double mean_difference_to_inverse(const Grid& grid, const Tensor& u, const Tensor& w) {
  const Tensor sum = allocate(u.shape, DType::f32);
  std::memcpy(sum.data(), w.data(), static_cast<std::size_t>(w.shape.count()) * sizeof(float));
  sample_into(components_first(u), {.output = components_first(sum), .accumulate = true},
      {.displacement = w,
          .grid_affine = displacement_matrix({}, grid, {}),
          .padding_mode = Outside::border},
      {});
  double total = 0;
  for (std::int64_t i = 0; i < grid.voxels(); ++i) {
    double square = 0;
    for (int a = 0; a < grid.rank; ++a) {
      square += std::pow(static_cast<double>(sum.elements<float>()[i * grid.rank + a]), 2);
    }
    total += std::sqrt(square);
  }
  return total / static_cast<double>(grid.voxels());
}

TEST(SymmetricQuality, FindsASmoothWarpWithoutFolds) {
  for (const int rank : {2, 3}) {
    const Grid fixed = grid_of(rank, {48, 44, 46}, {2.9, 3.1, 3}),
               moving = grid_of(rank, {52, 48, 44}, {2.8, 2.7, 3.2});
    const std::vector<Blob> all = blobs(rank, 5);
    const auto truth = [&](const Point& p) { return waved(p, rank); };
    Tensor own, other;
    const Volume f = image_of(fixed, all, truth, own);
    const Volume m = image_of(moving, all, unmoved, other);
    const Registration r = register_images(
        f, m, {.stages = {RegisterStage::rigid, RegisterStage::affine, RegisterStage::symmetric}});
    EXPECT_LT(error_of(r, fixed, truth), rank == 3 ? 1.0 : 1.2) << rank;
    EXPECT_GE(r.min_jacobian, 0.1);
    EXPECT_GE(corner_minimum(fixed, r.displacement), 0.0999);
    EXPECT_GT(corner_minimum(fixed, r.inverse_displacement), 0);
    EXPECT_LT(r.inverse_error_mm.mean, 0.05 * 2.9);
    EXPECT_LT(r.inverse_error_mm.p99, 0.25 * 2.9);
    EXPECT_EQ(r.fluid, 2.5);
    EXPECT_EQ(r.stages.back().stage, RegisterStage::symmetric);
    EXPECT_EQ(r.stages.back().levels.size(), 3u);
  }
}

TEST(SymmetricQuality, OfSwappedImagesIsTheInverse) {
  for (const int rank : {2, 3}) {
    const Grid grid = grid_of(rank, {48, 44, 46}, {3, 3, 3});
    const std::vector<Blob> all = blobs(rank, 9);
    Tensor own, other;
    const Volume f = image_of(
        grid, all, [&](const Point& p) { return waved(p, rank); }, own);
    const Volume m = image_of(grid, all, unmoved, other);
    const RegisterOptions options{.stages = kSymmetric, .start = RegisterStart::identity};
    const Tensor there = in_voxels(grid, register_images(f, m, options).displacement);
    const Tensor back = in_voxels(grid, register_images(m, f, options).displacement);
    EXPECT_LT(mean_difference_to_inverse(grid, there, back), 0.05) << rank;
    EXPECT_LT(mean_difference_to_inverse(grid, back, there), 0.05) << rank;
  }
}

// T(p), with u interpolated linearly; nothing where p lies outside the grid.
std::optional<Point> moved(const Registration& r, const Grid& grid, const Point& p) {
  const Point voxel = inverse(grid.to_world)(p);
  Point result = p;
  for (int corner = 0; corner < 1 << grid.rank; ++corner) {
    double weight = 1;
    std::int64_t at = 0, stride = grid.rank;
    for (int a = 0; a < grid.rank; ++a) {
      const auto axis = static_cast<std::size_t>(a);
      const double low = std::floor(voxel[axis]), fraction = voxel[axis] - low;
      const bool is_high = (corner >> a & 1) != 0;
      weight *= is_high ? fraction : 1 - fraction;
      const auto place = static_cast<std::int64_t>(low) + (is_high ? 1 : 0);
      if (weight > 0 && (place < 0 || place >= grid.size[axis])) return {};
      at += place * stride;
      stride *= grid.size[axis];
    }
    if (!(weight > 0)) continue;
    for (int a = 0; a < grid.rank; ++a) {
      const auto axis = static_cast<std::size_t>(a);
      result[axis] += weight * static_cast<double>(r.displacement.elements<float>()[at + a]);
    }
  }
  return map_of(r.affine)(result);
}

// |T'(T(p)) - p| in mm, its mean over the voxels of the grid that T moves into the other one.
double mean_return(
    const Registration& there, const Grid& grid, const Registration& back, const Grid& other) {
  double sum = 0, count = 0;
  for (std::int64_t i = 0; i < grid.voxels(); ++i) {
    const Point p = grid.to_world({static_cast<double>(i % grid.size[0]),
        static_cast<double>(i / grid.size[0] % grid.size[1]),
        static_cast<double>(i / grid.size[0] / grid.size[1])});
    const std::optional<Point> q = moved(there, grid, p);
    const std::optional<Point> again = q ? moved(back, other, *q) : q;
    if (!again) continue;
    const Point d = *again - p;
    sum += std::hypot(d[0], d[1], d[2]);
    count += 1;
  }
  EXPECT_GT(count, 0.2 * static_cast<double>(std::min(grid.voxels(), other.voxels())));
  return sum / count;
}

struct SwappedPair {
  const char* name;
  int rank;
  Grid fixed, moving;
  double degrees;
  bool has_masks = false;
};

// The linear stages run with either image as fixed, on grids that differ.
TEST(SymmetricQuality, WithLinearStagesOfSwappedImagesIsTheInverse) {
  const auto tilted = [](Grid grid, double degrees) {
    grid.to_world = turned(grid.rank, degrees, {1, -2, 0}) * grid.to_world;
    return grid;
  };
  const Grid plane = grid_of(2, {60, 56, 1}, {2.4, 2.4, 1}),
             cube = grid_of(3, {44, 40, 42}, {3, 3, 3}),
             thick = grid_of(3, {52, 46, 24}, {2.5, 2.7, 5.5}),
             part = grid_of(3, {30, 26, 40}, {3, 3, 3});
  const SwappedPair pairs[] = {{"a turned slice", 2, plane, plane, 12},
      {"a turned volume", 3, cube, cube, 12}, {"thick slices", 3, cube, tilted(thick, 8), 6},
      {"a part", 3, cube, part, 5}, {"masks", 3, cube, tilted(cube, 5), 7, true}};
  for (const SwappedPair& pair : pairs) {
    const std::vector<Blob> all = blobs(pair.rank, 23);
    const Map turn = turned(pair.rank, pair.degrees, {3, -2, pair.rank == 3 ? 2.0 : 0});
    Tensor own, other;
    const auto truth = [&](const Point& p) { return waved(turn(p), pair.rank); };
    const Volume f = image_of(pair.fixed, all, truth, own);
    const Volume m = image_of(pair.moving, all, unmoved, other);
    RegisterOptions options{
        .stages = {RegisterStage::rigid, RegisterStage::affine, RegisterStage::symmetric},
        .preset = RegisterPreset::quick};
    Tensor of_fixed, of_moving;
    if (pair.has_masks) {
      const auto mask_of = [](const Grid& grid, std::int64_t hidden) {
        Tensor mask = allocate({grid.size[2], grid.size[1], grid.size[0]}, DType::f32);
        for (std::int64_t i = 0; i < grid.voxels(); ++i) {
          mask.elements<float>()[i] = i % grid.size[0] < hidden ? 0.0f : 1.0f;
        }
        return mask;
      };
      of_fixed = mask_of(pair.fixed, 8);
      of_moving = mask_of(pair.moving, 3);
    }
    options.fixed_mask = of_fixed;
    options.moving_mask = of_moving;
    const Registration there = register_images(f, m, options);
    std::swap(options.fixed_mask, options.moving_mask);
    const Registration back = register_images(m, f, options);
    const double voxel = std::min(pair.fixed.smallest_spacing(), pair.moving.smallest_spacing());
    EXPECT_LT(mean_return(there, pair.fixed, back, pair.moving), 0.05 * voxel) << pair.name;
    EXPECT_LT(mean_return(back, pair.moving, there, pair.fixed), 0.05 * voxel) << pair.name;
    for (const auto& [r, grid] : {std::pair(&there, &pair.fixed), std::pair(&back, &pair.moving)}) {
      EXPECT_GE(r->min_jacobian, 0.1) << pair.name;
      EXPECT_LT(r->inverse_error_mm.mean, 0.05 * grid->smallest_spacing()) << pair.name;
    }
  }
}

// The start that is given is that of fixed to moving, whichever image is the base.
TEST(SymmetricStage, TakesAStartThatIsGivenEitherWay) {
  const Grid small = grid_of(2, {40, 36, 1}, {3, 3, 1}), large = grid_of(2, {48, 44, 1}, {3, 3, 1});
  const std::vector<Blob> all = blobs(2, 23);
  const Map turn = turned(2, 20, {6, -4, 0});
  for (const bool is_fixed_small : {true, false}) {
    const Grid &fixed = is_fixed_small ? small : large, &moving = is_fixed_small ? large : small;
    Tensor own, other;
    const Volume f = image_of(
        fixed, all, [&](const Point& p) { return turn(p); }, own);
    const Volume m = image_of(moving, all, unmoved, other);
    const Registration r = register_images(
        f, m, {.stages = kSymmetric, .start = RegisterStart::given, .initial = rows_of(turn)});
    EXPECT_LT(error_of(r, fixed, turn), 1);
    for (std::size_t i = 0; i < 12; ++i) EXPECT_NEAR(r.affine[i], rows_of(turn)[i], 1e-9);
  }
}

TEST(SymmetricStage, IsNotTakenBesideTheGreedyOne) {
  const Grid grid = grid_of(2, {20, 20, 1}, {1, 1, 1});
  Tensor own;
  const Volume f = image_of(grid, blobs(2, 1), unmoved, own);
  test::expect_refusal(
      [&] {
        register_images(f, f, {.stages = {RegisterStage::deformable, RegisterStage::symmetric}});
      },
      "register: stages holds deformable and symmetric; give one of them");
}

// exp(v) and exp(-v) of a velocity that is the same everywhere are that shift and its opposite.
TEST(Exponential, OfAConstantIsAShift) {
  const Grid grid = grid_of(2, {12, 9, 1}, {1, 1, 1});
  const Tensor v = allocate(grid.field_shape(), DType::f32), u = allocate(v.shape, DType::f32);
  for (const float size : {0.5f, 3.0f}) {
    std::fill_n(v.elements<float>(), v.shape.count(), size);
    for (const int sign : {1, -1}) {
      exponential(grid, v, sign, u, {});
      for (const double value : to_doubles(u)) EXPECT_NEAR(value, sign * size, 1e-5);
    }
  }
}

// exp(v) of a velocity that shrinks by a rate is the shrinking by e^rate.
TEST(Exponential, OfALinearVelocityIsItsMatrix) {
  const Grid grid = grid_of(2, {41, 41, 1}, {1, 1, 1});
  const Tensor v = allocate(grid.field_shape(), DType::f32), u = allocate(v.shape, DType::f32);
  for (std::int64_t i = 0; i < grid.voxels(); ++i) {
    v.elements<float>()[2 * i] = -0.3f * static_cast<float>(i % 41 - 20);
    v.elements<float>()[2 * i + 1] = -0.3f * static_cast<float>(i / 41 - 20);
  }
  exponential(grid, v, 1, u, {});
  const double factor = std::exp(-0.3) - 1;
  for (std::int64_t i = 0; i < grid.voxels(); ++i) {
    EXPECT_NEAR(static_cast<double>(u.elements<float>()[2 * i]),
        factor * static_cast<double>(i % 41 - 20), 0.02);
  }
}

TEST(GuardOfExponentials, LeavesNeitherFieldFolded) {
  const Grid grid = grid_of(3, {20, 18, 16}, {1, 1, 1});
  const Tensor v = allocate(grid.field_shape(), DType::f32), u = allocate(v.shape, DType::f32);
  for (std::int64_t i = 0; i < v.shape.count(); ++i) {
    v.elements<float>()[i] = static_cast<float>(6 * (test::uniform(3, i) - 0.5));
  }
  const Guarded guarded = guard_exponentials(grid, v, 0.1, {});
  EXPECT_TRUE(guarded.passed);
  EXPECT_GT(guarded.repaired, 0);
  EXPECT_GE(guarded.least, 0.1);
  for (const int sign : {1, -1}) {
    exponential(grid, v, sign, u, {});
    EXPECT_GE(corner_minimum(grid, u), 0.1) << sign;
  }
  const Tensor before = allocate(v.shape, DType::f32);
  std::memcpy(before.data(), v.data(), static_cast<std::size_t>(v.shape.count()) * sizeof(float));
  EXPECT_EQ(guard_exponentials(grid, v, 0.1, {}).repaired, 0);
  EXPECT_EQ(to_doubles(v), to_doubles(before));
}

}  // namespace
}  // namespace similis::registration_internal
