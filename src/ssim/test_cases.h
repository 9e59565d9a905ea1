// SPDX-License-Identifier: Apache-2.0
// The common part of SSIM's tests: pictures with all known difficulties, and a call of the
// operation that returns its results as the reference does.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "similis/ssim.hpp"
#include "src/ssim/reference.h"
#include "src/window/test_cases.h"

namespace similis::ssim_internal {

using window_test::kReductions;
using window_test::name;
using window_test::Pair;
using window_test::upstream_for;
using window_test::value_shape;

constexpr Padding kPaddings[] = {
    Padding::valid, Padding::same, Padding::reflect, Padding::replicate, Padding::renormalize};
/// The tolerance of a map on a GPU, where moments are f32, in pictures with flat areas.
constexpr double kMapOnGpu = 1e-4;

/// Waves and noise in [0, range), with patches in which x is flat and others in which y equals x.
/// Reads beyond the images meet NaN.
inline Pair textured(const Extents& shape, DType dtype, test::Layout x_layout,
    test::Layout y_layout, double range, std::uint32_t seed = 1) {
  const std::int64_t width = shape[shape.rank() - 1], height = shape[shape.rank() - 2];
  const auto x = [&](std::int64_t i) {
    const std::int64_t column = i % width, row = i / width % height;
    if ((column / 9 + row / 7) % 3 == 0) return 0.25 * range;
    const double wave =
        std::sin(0.3 * static_cast<double>(column) + 0.2 * static_cast<double>(row));
    return range * (0.5 + 0.3 * wave + 0.2 * (test::uniform(seed, i) - 0.5));
  };
  const auto y = [&](std::int64_t i) {
    const std::int64_t column = i % width, row = i / width % height;
    if ((column / 16 + row / 16) % 4 == 1) return x(i);
    return std::clamp(x(i) + 0.3 * range * (test::uniform(seed + 1, i) - 0.5), 0.0, range);
  };
  return {test::make(shape, dtype, x_layout, x), test::make(shape, dtype, y_layout, y)};
}

inline Reference computed(const TensorView& x, const TensorView& y, const SsimRequest& request,
    const SsimOptions& options, bool by_x = true, bool by_y = true,
    test::Layout layout = test::Layout::dense, const Execution& exec = {}) {
  return window_test::computed_by<Reference>(
      ssim_into, x, y, request, options, {by_x, by_y, layout}, exec);
}

/// Values to a tolerance, or to that part of a sum; the gradients that were computed by their
/// relative L2.
inline void expect_near(const Reference& found, const Reference& expected, double of_values,
    double of_gradients = 1e-5) {
  ASSERT_EQ(found.value.size(), expected.value.size());
  for (std::size_t i = 0; i < expected.value.size(); ++i) {
    ASSERT_NEAR(
        found.value[i], expected.value[i], of_values * std::max(1.0, std::abs(expected.value[i])))
        << i;
  }
  if (!found.x_gradient.empty()) {
    EXPECT_LT(test::relative_l2(found.x_gradient, expected.x_gradient), of_gradients);
  }
  if (!found.y_gradient.empty()) {
    EXPECT_LT(test::relative_l2(found.y_gradient, expected.y_gradient), of_gradients);
  }
}

}  // namespace similis::ssim_internal
