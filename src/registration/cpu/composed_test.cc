// SPDX-License-Identifier: Apache-2.0
// Fields that are composed, smoothed and rounded in one pass against the three written out, on
// every SIMD target.
#include "src/registration/cpu/composed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "src/core/tensor/doubles.h"
#include "src/registration/levels.h"
#include "src/registration/test_images.h"
#include "tests/arrays.h"
#include "tests/backends.h"

namespace similis {
namespace {

using namespace registration_internal;
using Values = std::vector<double>;

double at(const Values& field, const Grid& grid, std::int64_t x, std::int64_t y, std::int64_t z,
    std::int64_t c) {
  return field[static_cast<std::size_t>(3 * ((z * grid.size[1] + y) * grid.size[0] + x) + c)];
}

// u at a place, with the border's value outside.
double interpolated(const Values& u, const Grid& grid, const double (&place)[3], std::int64_t c) {
  std::int64_t cell[3];
  double share[3];
  for (std::size_t a = 0; a < 3; ++a) {
    const double inside = std::clamp(place[a], 0.0, static_cast<double>(grid.size[a] - 1));
    cell[a] = std::min(static_cast<std::int64_t>(inside), grid.size[a] - 2);
    share[a] = inside - static_cast<double>(cell[a]);
  }
  double sum = 0;
  for (int k = 0; k < 8; ++k) {
    const int by[3] = {k & 1, k >> 1 & 1, k >> 2};
    double weight = 1;
    for (int a = 0; a < 3; ++a) weight *= by[a] == 1 ? share[a] : 1 - share[a];
    sum += weight * at(u, grid, cell[0] + by[0], cell[1] + by[1], cell[2] + by[2], c);
  }
  return sum;
}

Values expected(const Grid& grid, const Values& along, const Values& u, const Composition& how) {
  const auto& n = grid.size;
  const std::int64_t steps[3] = {3, 3 * n[0], 3 * n[0] * n[1]};
  Values result;
  for (std::int64_t i = 0; i < grid.voxels(); ++i) {
    const std::int64_t voxel[3] = {i % n[0], i / n[0] % n[1], i / n[0] / n[1]};
    double place[3];
    for (int a = 0; a < 3; ++a) {
      place[a] =
          static_cast<double>(voxel[a]) + how.factor * along[static_cast<std::size_t>(3 * i + a)];
    }
    for (std::int64_t c = 0; c < 3; ++c) {
      result.push_back(how.factor * along[static_cast<std::size_t>(3 * i + c)] +
                       interpolated(u, grid, place, c));
    }
  }
  if (std::round(3 * how.smoothing) < 1) return result;
  const double beside = std::exp(-0.5 / (how.smoothing * how.smoothing)), sum = 1 + 2 * beside;
  for (std::size_t a = 0; a < 3; ++a) {
    const Values before = result;
    for (std::int64_t i = 0; i < 3 * grid.voxels(); ++i) {
      const std::int64_t own = i / steps[a] % n[a];
      const double low = before[static_cast<std::size_t>(i - (own > 0 ? steps[a] : 0))],
                   high = before[static_cast<std::size_t>(i + (own + 1 < n[a] ? steps[a] : 0))];
      result[static_cast<std::size_t>(i)] =
          (before[static_cast<std::size_t>(i)] + beside * (low + high)) / sum;
    }
  }
  return result;
}

// Two voxels along an axis, around a vector and around what is on the stack; more rows and planes
// than a task has. Steps lead across a voxel, and beyond every border.
TEST(Composed, IsThePassesOneByOne) {
  const std::array<std::int64_t, 3> sizes[] = {
      {2, 2, 2}, {3, 2, 5}, {17, 3, 2}, {127, 2, 3}, {128, 33, 2}, {131, 3, 4}, {5, 67, 39}};
  for (const auto& size : sizes) {
    const Grid grid = grid_of(3, size, {1, 1, 1});
    for (const DType dtype : {DType::f32, DType::f64}) {
      const auto field = [&](int seed, double most) {
        return test::make(grid.field_shape(), dtype, test::Layout::dense,
            [=](std::int64_t i) { return most * (2 * test::uniform(seed, i) - 1); });
      };
      const test::Array along = field(1, 3), u = field(2, 2);
      for (const double smoothing : {0.0, 0.25, 0.4}) {
        const Composition how{.factor = 0.5, .smoothing = smoothing};
        ASSERT_TRUE(can_compose_cpu(grid, how));
        const Values wanted = expected(grid, to_doubles(along), to_doubles(u), how);
        for (const test::Backend& backend : test::backends()) {
          const test::ScopedBackend scope(backend);
          const Tensor to = allocate(grid.field_shape(), dtype);
          compose_cpu(grid, along, u, how, to, {});
          const Values found = to_doubles(to);
          double most = 0;
          for (std::size_t i = 0; i < found.size(); ++i) {
            most = std::max(most, std::abs(found[i] - wanted[i]));
          }
          EXPECT_LT(most, dtype == DType::f64 ? 1e-13 : 3e-6)
              << backend.name << ", " << size[0] << "x" << size[1] << "x" << size[2] << ", σ "
              << smoothing;
        }
      }
    }
  }
}

TEST(Composed, RoundsSumsOfDoubles) {
  const Grid grid = grid_of(3, {19, 5, 6}, {1, 1, 1});
  const test::Array u = test::make(grid.field_shape(), DType::f64, test::Layout::dense,
      [](std::int64_t i) { return test::uniform(3, i); });
  for (const double smoothing : {0.0, 0.25}) {
    const Composition exact{.factor = 0.25, .smoothing = smoothing};
    Composition rounded = exact;
    rounded.unit = 1.0 / 65536;
    for (const test::Backend& backend : test::backends()) {
      const test::ScopedBackend scope(backend);
      const Tensor to = allocate(grid.field_shape(), DType::f64),
                   whole = allocate(grid.field_shape(), DType::f64);
      compose_cpu(grid, u, u, exact, to, {});
      compose_cpu(grid, u, u, rounded, whole, {});
      for (std::int64_t i = 0; i < u.shape.count(); ++i) {
        const double by_unit = to.elements<double>()[i] / rounded.unit;
        ASSERT_EQ(whole.elements<double>()[i], std::rint(by_unit) * rounded.unit) << backend.name;
      }
    }
  }
}

TEST(Composed, KeepsWhatIsNoNumberAndTakesNoOtherGaussian) {
  const Grid grid = grid_of(3, {9, 4, 4}, {1, 1, 1});
  const test::Array u = test::filled(grid.field_shape(), DType::f32, test::Layout::dense, 0.5);
  u.elements<float>()[3 * 40 + 1] = std::numeric_limits<float>::quiet_NaN();
  const test::Array still = test::filled(grid.field_shape(), DType::f32, test::Layout::dense, 0);
  for (const test::Backend& backend : test::backends()) {
    const test::ScopedBackend scope(backend);
    const Tensor to = allocate(grid.field_shape(), DType::f32);
    for (const auto& [along, of] : {std::pair{&u, &still}, std::pair{&still, &u}}) {
      compose_cpu(grid, *along, *of, {}, to, {});
      EXPECT_TRUE(std::isnan(to.elements<float>()[3 * 40 + 1])) << backend.name;
      EXPECT_EQ(to.elements<float>()[3 * 140 + 1], 0.5f) << backend.name;
    }
  }
  EXPECT_TRUE(can_compose_cpu(grid, {.smoothing = 0.49}));
  EXPECT_FALSE(can_compose_cpu(grid, {.smoothing = 0.5}));
  EXPECT_FALSE(can_compose_cpu(grid_of(3, {9, 1, 4}, {1, 1, 1}), {}));
  EXPECT_FALSE(can_compose_cpu(grid_of(2, {9, 4, 1}, {1, 1, 1}), {}));
}

}  // namespace
}  // namespace similis
