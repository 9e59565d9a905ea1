// SPDX-License-Identifier: Apache-2.0
// Exponentials, inverses and Jacobians: closed forms, and the reference of sample().
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "similis/fields.hpp"
#include "src/warp/reference.h"
#include "src/warp/test_fields.h"
#include "tests/refusal.h"

namespace similis {
namespace {

using test::channels_first;
using test::channels_last;
using test::Layout;
using test::values_of;
using warp_internal::reference_sample;

using Exponentiate = test::EachBackend;
using Invert = test::EachBackend;
using Jacobian = test::EachBackend;

// A smooth field: products of sines, `size` large.
Tensor waves(const Extents& shape, DType dtype, double size) {
  const std::int64_t d = shape[shape.rank() - 1];
  return test::make(shape, dtype, Layout::dense, [&](std::int64_t i) {
    double value = size;
    std::int64_t voxel = i / d;
    for (int axis = shape.rank() - 2; axis > 0; --axis) {
      const double t = static_cast<double>(voxel % shape[axis]) / static_cast<double>(shape[axis]);
      value *= std::sin(3.14159265358979 * t + 0.5 * static_cast<double>(i % d));
      voxel /= shape[axis];
    }
    return value;
  });
}

TEST_F(Exponentiate, OfAConstantFieldIsThatField) {
  // If u does not vary, u(x + u) = u as long as the sample lies inside.
  const Tensor v = test::make({1, 6, 30, 2}, DType::f32, Layout::dense,
      [](std::int64_t i) { return i % 2 == 0 ? 0.1 : -0.05; });
  for_each([&] {
    test::Arguments a;
    const std::vector<double> u = values_of(exponentiate(a.in(v), 6));
    // Inside, far from where zeros come in.
    const std::size_t middle = (3 * 30 + 12) * 2;
    EXPECT_NEAR(u[middle], 0.1, 1e-6);
    EXPECT_NEAR(u[middle + 1], -0.05, 1e-6);
    EXPECT_EQ(values_of(exponentiate(a.in(v), 0)), to_doubles(v));
  });
}

TEST_F(Exponentiate, SquaresTheHalfStep) {
  for (const DType dtype : {DType::f16, DType::f32, DType::f64}) {
    const Tensor v = waves({2, 9, 10, 21, 3}, dtype, 0.2);
    for_each([&] {
      test::Arguments a;
      const Tensor half =
          test::make(v.shape, DType::f64, Layout::dense, [whole = to_doubles(v)](std::int64_t i) {
            return whole[static_cast<std::size_t>(i)] / 2;
          });
      const std::vector<double> once = to_doubles(half);
      const std::vector<double> moved = channels_last(
          reference_sample(channels_first(half), {.displacement = half}).output, v.shape);
      std::vector<double> expected(once.size());
      for (std::size_t i = 0; i < once.size(); ++i) expected[i] = once[i] + moved[i];
      EXPECT_LT(test::relative_l2(values_of(exponentiate(a.in(v), 1)), expected),
          dtype == DType::f16 ? 1e-3 : 1e-6);
    });
  }
}

TEST_F(Invert, UndoesASmoothField) {
  const Extents shape = {2, 17, 40, 2};
  const Tensor u = waves(shape, DType::f64, 0.1);
  for_each([&] {
    test::Arguments a;
    const Inverse inverse = invert(a.in(u), 60, true, 0);
    for (const double residual : values_of(inverse.residual)) EXPECT_LT(residual, 1e-9);
    const Tensor w = test::make(
        shape, DType::f64, Layout::dense, [w = values_of(inverse.displacement)](std::int64_t i) {
          return w[static_cast<std::size_t>(i)];
        });
    const std::vector<double> back = channels_last(
        reference_sample(channels_first(u), {.displacement = w, .padding_mode = Outside::border})
            .output,
        shape);
    std::vector<double> sum = to_doubles(w);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += back[i];
    EXPECT_LT(test::largest(sum), 1e-9);
  });
}

// The residual that it states is that of the reference's sampling at the border's continuation, in
// 2D and 3D, of fields that reach out of the grid; 0.01 voxels unless asked otherwise.
TEST_F(Invert, MeetsItsToleranceAtTheRimToo) {
  for (const Extents& shape : {Extents{2, 33, 65, 2}, Extents{1, 17, 9, 34, 3},
           Extents{1, 1, 40, 2}, Extents{1, 5, 1, 31, 3}}) {
    for (const bool align : {true, false}) {
      for (const DType dtype : {DType::f16, DType::f32, DType::f64}) {
        const std::int64_t d = shape[shape.rank() - 1], width = shape[shape.rank() - 2];
        const Tensor u = test::make(shape, dtype, Layout::dense, [&](std::int64_t i) {
          const double x = static_cast<double>(i / d % width) / static_cast<double>(width);
          return 0.12 * std::cos(4 * x + static_cast<double>(i % d)) + 0.05;
        });
        for_each([&] {
          test::Arguments a;
          const Inverse inverse = invert(a.in(u), 60, align);
          const Tensor w = test::make(shape, DType::f64, Layout::dense,
              [w = values_of(inverse.displacement)](
                  std::int64_t i) { return w[static_cast<std::size_t>(i)]; });
          const std::vector<double> back = channels_last(
              reference_sample(channels_first(u),
                  {.displacement = w, .padding_mode = Outside::border, .align_corners = align})
                  .output,
              shape);
          const std::vector<double> own = to_doubles(w);
          // f16 rounds the displacement itself, by up to 2⁻¹² of a unit.
          const double rounding = dtype == DType::f16 ? 0.05 : 1e-4;
          double most = 0, voxel = 0;  // in voxels; the largest voxel
          for (std::size_t i = 0; i < own.size(); ++i) {
            const std::int64_t axis = static_cast<std::int64_t>(i) % d;
            const auto n = static_cast<double>(shape[shape.rank() - 2 - static_cast<int>(axis)]);
            const double voxels = n == 1 && align ? 1 : (align ? n - 1 : n) / 2;
            voxel = std::max(voxel, 1 / voxels);
            most = std::max(most, std::abs(own[i] + back[i]) * voxels);
          }
          EXPECT_LT(most, 0.01 + rounding);
          for (const double r : values_of(inverse.residual)) EXPECT_LE(r, 0.0101 * voxel);
        });
      }
    }
  }
}

// Plain steps swing between two fields where u changes by more than it moves.
TEST_F(Invert, ConvergesWherePlainStepsDoNot) {
  const std::int64_t n = 101;
  const Tensor u = test::make({1, n, n, 2}, DType::f32, Layout::dense, [&](std::int64_t i) {
    const double x = -1 + 2 * static_cast<double>(i / 2 % n) / static_cast<double>(n - 1);
    const double y = -1 + 2 * static_cast<double>(i / 2 / n) / static_cast<double>(n - 1);
    const double along = i % 2 == 0 ? x : y;
    return 0.9 * std::sin(1.5 * along) * std::exp(-(x * x + y * y));
  });
  for_each([&] {
    test::Arguments a;
    const JacobianDeterminant j = jacobian_determinant(a.in(u));
    EXPECT_EQ(values_of(j.folds), std::vector<double>{0});
    EXPECT_LT(values_of(invert(a.in(u), 60).residual)[0], 0.01 * 2 / (n - 1));
    const double after_one = values_of(invert(a.in(u), 1).residual)[0];
    EXPECT_GT(values_of(invert(a.in(u), 0).residual)[0], after_one);
  });
}

TEST_F(Invert, ANanShowsInItsImagesResidual) {
  const Tensor u = waves({3, 9, 10, 21, 3}, DType::f32, 0.1);
  u.elements<float>()[9 * 10 * 21 * 3 + 1000] = std::numeric_limits<float>::quiet_NaN();
  for_each([&] {
    test::Arguments a;
    const Inverse inverse = invert(a.in(u));
    const std::vector<double> residual = values_of(inverse.residual);
    EXPECT_LT(residual[0], 0.01);
    EXPECT_TRUE(std::isnan(residual[1]));
    EXPECT_LT(residual[2], 0.01);
  });
}

TEST_F(Invert, HasTheSameBitsInEveryRun) {
  const Tensor u = waves({1, 13, 11, 37, 3}, DType::f32, 0.2);
  for_each([&] {
    test::Arguments a;
    const TensorView given = a.in(u);
    const Inverse first = invert(given);
    const std::vector<double> values = values_of(first.displacement);
    const std::vector<double> det = values_of(jacobian_determinant(given).determinant);
    for (int run = 1; run < 20; ++run) {
      const Inverse again = invert(given);
      EXPECT_EQ(values_of(again.displacement), values);
      EXPECT_EQ(values_of(again.residual), values_of(first.residual));
      EXPECT_EQ(values_of(jacobian_determinant(given).determinant), det);
    }
  });
}

TEST_F(Invert, SaysWhenItFails) {
  const Tensor folded = waves({1, 20, 30, 2}, DType::f32, 3);
  for_each([&] {
    test::Arguments a;
    EXPECT_GT(values_of(invert(a.in(folded), 20).residual)[0], 0.1);
  });
}

TEST_F(Jacobian, IsExactForAffineMaps) {
  const double a3[3][3] = {{0.2, 0.1, -0.3}, {0.05, -0.4, 0.2}, {0.3, 0.1, 0.15}};
  const double det = (1.2 * (0.6 * 1.15 - 0.2 * 0.1)) - 0.1 * (0.05 * 1.15 - 0.2 * 0.3) +
                     -0.3 * (0.05 * 0.1 - 0.6 * 0.3);
  for (const bool align : {true, false}) {
    const Extents shape = {1, 4, 5, 6, 3};
    const Tensor u = test::make(shape, DType::f64, Layout::dense, [&](std::int64_t i) {
      const std::int64_t voxel[3] = {i / 3 % 6, i / 18 % 5, i / 90};
      const double n[3] = {6, 5, 4};
      double sum = 0;
      for (int j = 0; j < 3; ++j) {
        const double t = static_cast<double>(voxel[j]);
        sum += a3[i % 3][j] * (align ? -1 + 2 * t / (n[j] - 1) : (2 * t + 1) / n[j] - 1);
      }
      return sum;
    });
    for_each([&] {
      test::Arguments a;
      const JacobianDeterminant j = jacobian_determinant(a.in(u), align);
      for (const double value : values_of(j.determinant)) EXPECT_NEAR(value, det, 1e-12);
      EXPECT_EQ(values_of(j.folds), std::vector<double>{0});
    });
  }
}

TEST_F(Jacobian, CountsFolds) {
  // x + u(x) runs backwards along x in two of four columns of the second image.
  const Tensor u = test::make({2, 3, 4, 2}, DType::f32, Layout::channels_last, [](std::int64_t i) {
    const double bend[4] = {0, 0, -3, -3};
    return i >= 24 && i % 2 == 0 ? bend[i / 2 % 4] : 0.0;
  });
  for_each([&] {
    test::Arguments a;
    const JacobianDeterminant j = jacobian_determinant(a.in(u));
    EXPECT_EQ(values_of(j.folds), (std::vector<double>{0, 6}));
    EXPECT_EQ(j.determinant.shape, (Extents{2, 3, 4}));
  });
}

TEST_F(Jacobian, CountsNansAsFolds) {
  const Tensor u = waves({2, 6, 7, 35, 3}, DType::f32, 0.01);
  u.elements<float>()[6 * 7 * 35 * 3 + 3 * 500] = std::numeric_limits<float>::quiet_NaN();
  for_each([&] {
    test::Arguments a;
    const JacobianDeterminant j = jacobian_determinant(a.in(u));
    const std::vector<double> det = values_of(j.determinant);
    const auto nans = std::ranges::count_if(det, [](double d) { return std::isnan(d); });
    EXPECT_EQ(nans, 6);
    EXPECT_EQ(values_of(j.folds), (std::vector<double>{0, 6}));
  });
}

// Against differences in f64, for odd sizes, one past a tile and one row, every dtype and strides.
TEST_F(Jacobian, MatchesItsDefinition) {
  for (const Extents& shape :
      {Extents{2, 9, 17, 65, 3}, Extents{1, 2, 1, 33, 3}, Extents{1, 1, 300, 2},
          Extents{3, 33, 31, 2}, Extents{1, 8, 8, 32, 3}, Extents{1, 5, 3, 600, 3}}) {
    for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
      for (const Layout layout : {Layout::dense, Layout::permuted}) {
        const Tensor u = test::noise(shape, dtype, layout, 7, 0.02);
        const std::vector<double> values = to_doubles(u);
        const int rank = shape.rank() - 2;
        const std::int64_t voxels = shape.count() / (shape[0] * rank);
        std::vector<double> expected;
        double folds = 0;
        for (std::int64_t v = 0; v < shape[0] * voxels; ++v) {
          double j[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
          std::int64_t stride = 1, rest = v % voxels;
          for (int a = 0; a < rank; ++a) {
            const std::int64_t n = shape[rank - a], at = rest % n;
            const std::int64_t below = at > 0 ? 1 : 0, above = at + 1 < n ? 1 : 0;
            for (int i = 0; i < rank && n > 1; ++i) {
              const auto value = [&](std::int64_t other) {
                return values[static_cast<std::size_t>((v + other * stride) * rank + i)];
              };
              j[i][a] += (value(above) - value(-below)) * static_cast<double>(n - 1) / 2 /
                         static_cast<double>(above + below);
            }
            rest /= n;
            stride *= n;
          }
          expected.push_back(j[0][0] * (j[1][1] * j[2][2] - j[1][2] * j[2][1]) -
                             j[0][1] * (j[1][0] * j[2][2] - j[1][2] * j[2][0]) +
                             j[0][2] * (j[1][0] * j[2][1] - j[1][1] * j[2][0]));
          folds += expected.back() <= 0 ? 1 : 0;
        }
        for_each([&] {
          test::Arguments a;
          const JacobianDeterminant j = jacobian_determinant(a.in(u));
          const double bound = dtype == DType::f16    ? 1e-3
                               : dtype == DType::bf16 ? 1e-2
                               : dtype == DType::f32  ? 1e-6
                                                      : 1e-14;
          EXPECT_LT(test::relative_l2(values_of(j.determinant), expected), bound);
          double counted = 0;
          for (const double each : values_of(j.folds)) counted += each;
          EXPECT_NEAR(counted, folds, 1);
        });
      }
    }
  }
}

TEST(FieldsRefuse, WhatDoesNotFit) {
  const Tensor image = test::noise({1, 1, 4, 5, 6}, DType::f32, Layout::dense, 1, 1);
  const Tensor u = test::noise({1, 4, 5, 6, 3}, DType::f32, Layout::dense, 1, 1);
  test::expect_refusal(
      [&] { exponentiate(u, 33); }, "exponentiate: n is 33; it must be from 0 to 32");
  test::expect_refusal(
      [&] { invert(u, -1); }, "invert: iterations is -1; it must be from 0 to 10000");
  test::expect_refusal(
      [&] { invert(u, 5, true, -1); }, "invert: tolerance is -1; it must be a number of 0 or more");
  test::expect_refusal(
      [&] { invert_into(u, u, {}); }, "invert: output has the memory of u; it must have its own");
  test::expect_refusal([&] { jacobian_determinant(image); },
      "jacobian_determinant: u has shape [1, 1, 4, 5, 6]; it must be [N, Y, X, 2] or [N, Z, Y, X, "
      "3]");
  test::expect_refusal(
      [&] {
        jacobian_determinant(u, true, Coordinates{.x = 1}, Coordinates{.x = 1, .y = 1, .z = 1});
      },
      "jacobian_determinant: min_coords and max_coords are alike along x; they must span the "
      "field");
}

}  // namespace
}  // namespace similis
