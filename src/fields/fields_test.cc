// SPDX-License-Identifier: Apache-2.0
// Exponentials, inverses and Jacobians: closed forms, and the reference of sample().
#include <gtest/gtest.h>

#include <cmath>

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
      const Tensor half = test::make(v.shape, DType::f64, Layout::dense,
          [&](std::int64_t i) { return to_doubles(v)[static_cast<std::size_t>(i)] / 2; });
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
    const Inverse inverse = invert(a.in(u), 60);
    for (const double residual : values_of(inverse.residual)) EXPECT_LT(residual, 1e-9);
    const Tensor w = test::make(
        shape, DType::f64, Layout::dense, [w = values_of(inverse.displacement)](std::int64_t i) {
          return w[static_cast<std::size_t>(i)];
        });
    const std::vector<double> back =
        channels_last(reference_sample(channels_first(u), {.displacement = w}).output, shape);
    std::vector<double> sum = to_doubles(w);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += back[i];
    EXPECT_LT(test::largest(sum), 1e-9);
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

TEST(FieldsRefuse, WhatDoesNotFit) {
  const Tensor image = test::noise({1, 1, 4, 5, 6}, DType::f32, Layout::dense, 1, 1);
  const Tensor u = test::noise({1, 4, 5, 6, 3}, DType::f32, Layout::dense, 1, 1);
  test::expect_refusal(
      [&] { exponentiate(u, 33); }, "exponentiate: n is 33; it must be from 0 to 32");
  test::expect_refusal(
      [&] { invert(u, -1); }, "invert: iterations is -1; it must be from 0 to 10000");
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
