// SPDX-License-Identifier: Apache-2.0
// The C functions of fields.h against the C++ ones, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "similis/c/fields.h"
#include "similis/c/warp.h"
#include "similis/fields.hpp"
#include "tests/arrays.h"
#include "tests/c_tensor.h"

namespace similis {
namespace {

using test::CTensor;
using test::Layout;

Tensor empty(const Extents& shape, DType dtype = DType::f32) {
  return test::filled(shape, dtype, Layout::dense, test::kUntouched);
}
void expect_equal(const Tensor& actual, const TensorView& expected) {
  EXPECT_EQ(to_doubles(actual), to_doubles(expected));
}

TEST(FieldsCApi, ArgumentsArrive) {
  const test::Array w = test::noise({1, 4, 5, 6, 3}, DType::f32, Layout::dense, 6, 0.2);
  const Coordinates low{-0.9, -0.8, -0.7}, high{0.6, 0.5, 0.4};
  similis_warp_options options = SIMILIS_WARP_DEFAULTS;
  options.align_corners = 0;
  options.has_min_coords = options.has_max_coords = 1;
  std::ranges::copy(std::array{low.x, low.y, low.z}, options.min_coords);
  std::ranges::copy(std::array{high.x, high.y, high.z}, options.max_coords);
  const Tensor exponential = empty(w.shape), inverse = empty(w.shape), residual = empty({1}),
               determinant = empty({1, 4, 5, 6}), folds = empty({1}, DType::f64);
  ASSERT_EQ(
      similis_exponentiate(CTensor(w).get(), 3, &options, CTensor(exponential).get(), nullptr),
      SIMILIS_OK);
  expect_equal(exponential, exponentiate(w, 3, false));
  options.tolerance = 1e-7;
  ASSERT_EQ(similis_invert(CTensor(w).get(), 4, &options, CTensor(inverse).get(),
                CTensor(residual).get(), nullptr),
      SIMILIS_OK);
  const Inverse expected = invert(w, 4, false, 1e-7);
  expect_equal(inverse, expected.displacement);
  expect_equal(residual, expected.residual);
  ASSERT_EQ(similis_jacobian_determinant(CTensor(w).get(), &options, CTensor(determinant).get(),
                CTensor(folds).get(), nullptr),
      SIMILIS_OK);
  const JacobianDeterminant jacobian = jacobian_determinant(w, false, low, high);
  expect_equal(determinant, jacobian.determinant);
  expect_equal(folds, jacobian.folds);
}

// The tables' defaults, which NULL takes, are those of the C++ functions' arguments.
TEST(FieldsCApi, DefaultsAreThoseOfCpp) {
  const test::Array u = test::noise({1, 5, 6, 2}, DType::f32, Layout::dense, 1, 0.2);
  const Tensor exponential = empty(u.shape), inverse = empty(u.shape), residual = empty({1}),
               determinant = empty({1, 5, 6}), folds = empty({1}, DType::f64);
  ASSERT_EQ(similis_exponentiate(CTensor(u).get(), 7, nullptr, CTensor(exponential).get(), nullptr),
      SIMILIS_OK);
  expect_equal(exponential, exponentiate(u));
  ASSERT_EQ(similis_invert(CTensor(u).get(), 30, nullptr, CTensor(inverse).get(),
                CTensor(residual).get(), nullptr),
      SIMILIS_OK);
  expect_equal(inverse, invert(u).displacement);
  ASSERT_EQ(similis_jacobian_determinant(CTensor(u).get(), nullptr, CTensor(determinant).get(),
                CTensor(folds).get(), nullptr),
      SIMILIS_OK);
  expect_equal(determinant, jacobian_determinant(u).determinant);
}

TEST(FieldsCApi, RefusalsComeAsAStatusAndASentence) {
  const test::Array u = test::noise({1, 5, 6, 2}, DType::f32, Layout::dense, 1, 0.2);
  EXPECT_EQ(similis_exponentiate(nullptr, 1, nullptr, CTensor(u).get(), nullptr),
      SIMILIS_INVALID_ARGUMENT);
  EXPECT_STREQ(similis_last_error(), "exponentiate: v is NULL; it must be a tensor");
  similis_warp_options options = SIMILIS_WARP_DEFAULTS;
  options.tolerance = -1;
  EXPECT_EQ(similis_invert(
                CTensor(u).get(), 1, &options, CTensor(empty(u.shape)).get(), nullptr, nullptr),
      SIMILIS_INVALID_ARGUMENT);
  EXPECT_STREQ(similis_last_error(), "invert: tolerance is -1; it must be a number of 0 or more");
}

}  // namespace
}  // namespace similis
