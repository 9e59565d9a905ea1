// SPDX-License-Identifier: Apache-2.0
// The common part of LNCC's tests: images with all known difficulties, and a call of the operation
// that returns its results as the reference does.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "similis/lncc.hpp"
#include "src/lncc/reference.h"
#include "src/window/test_cases.h"

namespace similis::lncc_internal {

using window_test::kReductions;
using window_test::name;
using window_test::Pair;
using window_test::upstream_for;
using window_test::value_shape;

constexpr Padding kPaddings[] = {Padding::valid, Padding::same, Padding::renormalize};

/// Waves and noise in offset + [0, range), with patches in which x is flat, others in which y is,
/// and others in which y is x turned over. Reads beyond the images meet NaN.
inline Pair textured(const Extents& shape, DType dtype, test::Layout x_layout,
    test::Layout y_layout, double range, double offset = 0, std::uint32_t seed = 1) {
  const std::int64_t width = shape[shape.rank() - 1], height = shape[shape.rank() - 2];
  const auto x = [=](std::int64_t i) {
    const std::int64_t column = i % width, row = i / width % height;
    if ((column / 9 + row / 7) % 3 == 1) return 0.25 * range + offset;
    const double wave =
        std::sin(0.3 * static_cast<double>(column) + 0.2 * static_cast<double>(row));
    return range * (0.5 + 0.3 * wave + 0.2 * (test::uniform(seed, i) - 0.5)) + offset;
  };
  const auto y = [=](std::int64_t i) {
    const std::int64_t column = i % width, row = i / width % height;
    if ((column / 16 + row / 16) % 4 == 1) return range - (x(i) - offset) + offset;
    if ((column / 11 + row / 8) % 5 == 2) return 0.75 * range + offset;
    const double noisy = x(i) - offset + 0.3 * range * (test::uniform(seed + 1, i) - 0.5);
    return std::clamp(noisy, 0.0, range) + offset;
  };
  return {test::make(shape, dtype, x_layout, x), test::make(shape, dtype, y_layout, y)};
}

inline Reference computed(const TensorView& x, const TensorView& y, const LnccRequest& request,
    const LnccOptions& options, bool by_x = true, bool by_y = true,
    test::Layout layout = test::Layout::dense, const Execution& exec = {}) {
  return window_test::computed_by<Reference>(
      lncc_into, x, y, request, options, {by_x, by_y, layout}, exec);
}

/// The tolerance of a result: values are f32, gradients have the images' dtype.
struct Tolerance {
  double value, gradient;
};
inline Tolerance tolerance(DType dtype) {
  switch (dtype) {
    case DType::f64: return {1e-11, 1e-9};
    case DType::f16: return {1e-5, 0x1p-10};
    case DType::bf16: return {1e-5, 0x1p-7};
    default: return {1e-5, 1e-5};
  }
}

}  // namespace similis::lncc_internal
