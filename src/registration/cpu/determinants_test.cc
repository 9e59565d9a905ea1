// SPDX-License-Identifier: Apache-2.0
// Corner determinants against those written out for one voxel, on every SIMD target.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "src/core/tensor/doubles.h"
#include "src/registration/cpu/field_check.h"
#include "src/registration/guard.h"
#include "src/registration/passes.h"
#include "src/registration/test_images.h"
#include "tests/arrays.h"
#include "tests/backends.h"

namespace similis {
namespace {

using namespace registration_internal;
using Place = std::array<std::int64_t, 3>;

constexpr double kAccepted = 0.1;

double least_at(const Grid& grid, const float* u, const Place& p) {
  const int n = grid.rank;
  const auto at = [&](const Place& q, int c) {
    return static_cast<double>(u[((q[2] * grid.size[1] + q[1]) * grid.size[0] + q[0]) * n + c]);
  };
  double least = std::numeric_limits<double>::infinity();
  for (int corner = 0; corner < 1 << n; ++corner) {
    Matrix j;
    for (int a = 0; a < n; ++a) {
      const auto axis = static_cast<std::size_t>(a);
      const bool has_next = p[axis] + 1 < grid.size[axis], has_last = p[axis] > 0;
      const bool forward = has_next && ((corner >> a & 1) == 0 || !has_last);
      Place high = p, low = p;
      if (forward) ++high[axis];
      if (!forward && has_last) --low[axis];
      for (int c = 0; c < n; ++c) j(c, a) = at(high, c) - at(low, c) + (a == c ? 1 : 0);
    }
    least = std::min(least, determinant(j));
  }
  return least;
}

// lowest: the least determinant of each voxel of the grid.
void expect_determinants(
    const Grid& grid, const float* u, const std::vector<double>& lowest, const Box& box) {
  const std::int64_t count = box.size[0] * box.size[1] * box.size[2];
  std::vector<float> flags(static_cast<std::size_t>(count)), wanted;
  const Determinants found =
      corner_determinants(GridRows(grid), u, box, kAccepted, flags.data(), {});
  double least = std::numeric_limits<double>::infinity();
  std::int64_t bad = 0;
  Place low = grid.size, high = {-1, -1, -1};
  for (std::int64_t i = 0; i < count; ++i) {
    const Place p = {box.first[0] + i % box.size[0], box.first[1] + i / box.size[0] % box.size[1],
        box.first[2] + i / box.size[0] / box.size[1]};
    const double own =
        lowest[static_cast<std::size_t>((p[2] * grid.size[1] + p[1]) * grid.size[0] + p[0])];
    least = std::min(least, own);
    wanted.push_back(own < kAccepted ? 1 : 0);
    if (own >= kAccepted) continue;
    ++bad;
    for (std::size_t a = 0; a < 3; ++a) {
      low[a] = std::min(low[a], p[a]);
      high[a] = std::max(high[a], p[a]);
    }
  }
  EXPECT_EQ(flags, wanted);
  EXPECT_NEAR(found.least, least, 1e-5);
  EXPECT_EQ(found.bad, bad);
  const Determinants without = corner_determinants(GridRows(grid), u, box, kAccepted, nullptr, {});
  EXPECT_EQ(without.least, found.least);
  EXPECT_EQ(without.bad, bad);
  if (bad == 0) return;
  EXPECT_EQ(found.around.first, low);
  for (std::size_t a = 0; a < 3; ++a) EXPECT_EQ(found.around.size[a], high[a] - low[a] + 1);
}

// Rows of one voxel, around a vector's lanes and around what is kept of a row; boxes at each
// border.
TEST(CornerDeterminants, AreThoseOfEveryVoxel) {
  for (const int rank : {2, 3}) {
    for (const std::int64_t width : {1, 2, 3, 7, 8, 9, 16, 17, 31, 67, 255, 256, 257, 258}) {
      const Grid grid = grid_of(rank, {width, 3, rank == 3 ? 3 : 1}, {1, 1, 1});
      const test::Array u = test::make(grid.field_shape(), DType::f32, test::Layout::dense,
          [](std::int64_t i) { return 0.9 * test::uniform(2, i); });
      const float* const field = u.elements<float>();
      std::vector<double> lowest;
      for (std::int64_t i = 0; i < grid.voxels(); ++i) {
        lowest.push_back(least_at(grid, field, {i % width, i / width % 3, i / width / 3}));
      }
      for (const test::Backend& backend : test::backends()) {
        SCOPED_TRACE(backend.name + ", " + std::to_string(rank) + "D, " + std::to_string(width));
        const test::ScopedBackend scope(backend);
        expect_determinants(grid, field, lowest, {.size = grid.size});
        if (width < 3) continue;
        const std::int64_t depth = rank == 3 ? 2 : 1;
        expect_determinants(
            grid, field, lowest, {.first = {1, 1, 0}, .size = {width - 2, 2, depth}});
        expect_determinants(
            grid, field, lowest, {.first = {2, 0, depth - 1}, .size = {width - 2, 3, 1}});
      }
    }
  }
}

TEST(CornerDeterminants, AreNotANumberWhereOneIs) {
  for (const test::Backend& backend : test::backends()) {
    const test::ScopedBackend scope(backend);
    for (const std::int64_t at : {0, 5, 16, 20, 40}) {
      const Grid grid = grid_of(3, {41, 3, 3}, {1, 1, 1});
      const test::Array u = test::filled(grid.field_shape(), DType::f32, test::Layout::dense, 0);
      u.elements<float>()[3 * (41 * 4 + at) + 1] = std::numeric_limits<float>::quiet_NaN();
      std::vector<float> flags(static_cast<std::size_t>(grid.voxels()));
      const Determinants found = corner_determinants(
          GridRows(grid), u.elements<float>(), {.size = grid.size}, kAccepted, flags.data(), {});
      EXPECT_TRUE(std::isnan(found.least)) << backend.name << ", voxel " << at;
      const std::int64_t neighbours = at == 0 || at == 40 ? 1 : 2;
      EXPECT_EQ(found.bad, 5 + neighbours) << backend.name << ", voxel " << at;
      EXPECT_EQ(std::count(flags.begin(), flags.end(), 1.0f), found.bad);
    }
  }
}

// A field with folds in two corners and in the middle of a row of several pieces.
test::Array folded(const Grid& grid, DType dtype) {
  return test::make(grid.field_shape(), dtype, test::Layout::dense, [&](std::int64_t i) {
    const std::int64_t voxel = i / 3, x = voxel % grid.size[0],
                       y = voxel / grid.size[0] % grid.size[1],
                       z = voxel / grid.size[0] / grid.size[1];
    const bool in_corner = x < 3 && y < 3 && z < 3, in_middle = std::abs(x - 140) < 3 && y > 20,
               at_end = x > grid.size[0] - 3 && z > grid.size[2] - 3;
    return (in_corner || in_middle || at_end ? 3 : 0.3) * (test::uniform(3, i) - 0.5);
  });
}

TEST(FieldCheck, LooksAtPiecesAndFindsSpots) {
  constexpr std::int64_t kApart = 6;
  const Grid grid = grid_of(3, {300, 25, 9}, {1, 1, 1});
  const test::Array u = folded(grid, DType::f64);
  for (const test::Backend& backend : test::backends()) {
    const test::ScopedBackend scope(backend);
    std::vector<double> flags(static_cast<std::size_t>(grid.voxels()));
    const Determinants found =
        corner_determinants(GridRows(grid), u, {.size = grid.size}, kAccepted, flags.data(), {});
    FieldCheck check(GridRows(grid), u, kAccepted);
    check.look({.size = grid.size}, {});
    EXPECT_EQ(check.least(), found.least);
    EXPECT_EQ(check.bad(), found.bad);
    const std::vector<Box> spots = check.spots(kApart);
    EXPECT_EQ(spots.size(), 3u);
    std::int64_t held = 0;
    for (const Box& spot : spots) {
      for (std::int64_t i = 0; i < grid.voxels(); ++i) {
        const Place p = {i % 300, i / 300 % 25, i / 300 / 25};
        bool is_inside = flags[static_cast<std::size_t>(i)] != 0;
        for (std::size_t a = 0; a < 3; ++a) {
          is_inside &= p[a] >= spot.first[a] && p[a] < spot.first[a] + spot.size[a];
        }
        held += is_inside ? 1 : 0;
      }
    }
    EXPECT_EQ(held, found.bad) << backend.name;
    // Another look at a part changes what lies there alone.
    const double before = check.least();
    u.elements<double>()[3 * ((2 * 25 + 12) * 300 + 60)] = 40;
    check.look({.first = {70, 12, 2}, .size = {2, 1, 1}}, {});
    EXPECT_LT(check.least(), before - 10);
    u.elements<double>()[3 * ((2 * 25 + 12) * 300 + 60)] = 0;
  }
}

// Spot by spot the guard leaves the field that it leaves when it repairs all of a box at once.
TEST(FieldCheck, RepairsSpotsAsOneBox) {
  const Grid grid = grid_of(3, {300, 25, 9}, {1, 1, 1});
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const test::Backend& backend : test::backends()) {
      const test::ScopedBackend scope(backend);
      const test::Array own = folded(grid, dtype), other = folded(grid, dtype);
      const Guarded guarded = guard(grid, own, kAccepted, {});
      EXPECT_TRUE(guarded.passed) << backend.name;
      const Box whole = {.size = grid.size};
      Determinants found =
          corner_determinants(GridRows(grid), other, whole, kAccepted, nullptr, {});
      EXPECT_EQ(guarded.repaired, found.bad);
      for (int i = 0; i < kRepairs && found.bad > 0; ++i) {
        smooth_about(grid, found.around, other, kAccepted, other, {});
        found = corner_determinants(GridRows(grid), other, whole, kAccepted, nullptr, {});
      }
      EXPECT_EQ(guarded.least, found.least);
      EXPECT_EQ(to_doubles(own), to_doubles(other)) << backend.name;
    }
  }
}

}  // namespace
}  // namespace similis
