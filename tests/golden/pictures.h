// SPDX-License-Identifier: Apache-2.0
// The pictures that make_golden.py gave to other libraries, and the layout of a row of their
// results.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "similis/gradient.hpp"
#include "src/core/joined.h"
#include "src/core/require.h"
#include "src/core/tensor/doubles.h"
#include "tests/arrays.h"
#include "tests/backends.h"

namespace similis::test {

/// The relation of y to x.
enum class Kind : std::uint8_t { distorted, nearly_equal, inverted, bytes, twelve_bits };

inline const char* name(Kind kind) {
  switch (kind) {
    case Kind::distorted: return "distorted";
    case Kind::nearly_equal: return "nearly equal";
    case Kind::inverted: return "inverted";
    case Kind::bytes: return "bytes";
    case Kind::twelve_bits: return "12 bits";
  }
  return "unknown";
}

struct Pictures {
  Array x, y;
  double data_range = 1;
};

/// Makes the same pictures as pictures() of make_golden.py.
inline Pictures pictures(Kind kind, const Extents& shape) {
  const std::int64_t width = shape[shape.rank() - 1];
  const auto plain = [=](std::int64_t i) {
    const std::int64_t column = i % width, row = i / width;
    const double ramp = static_cast<double>((5 * column + 3 * row) % 64) / 64;
    const auto board = static_cast<double>((column / 8 + row / 8) % 2);
    return 0.5 * ramp + 0.25 * board + 0.25 * uniform(1, i);
  };
  const auto distorted = [=](std::int64_t i) { return 0.8 * plain(i) + 0.2 * uniform(2, i); };
  const auto of = [&](const auto& value) { return make(shape, DType::f64, Layout::dense, value); };
  const auto in_steps = [&](const auto& value, double steps) {
    return of([=](std::int64_t i) { return std::floor(steps * value(i)); });
  };
  switch (kind) {
    case Kind::distorted: return {of(plain), of(distorted)};
    case Kind::nearly_equal:
      return {of(plain), of([=](std::int64_t i) { return plain(i) + 0.001 * uniform(2, i); })};
    case Kind::inverted: return {of(plain), of([=](std::int64_t i) { return 1 - plain(i); })};
    case Kind::bytes: return {in_steps(plain, 256), in_steps(distorted, 256), 255};
    case Kind::twelve_bits: return {in_steps(plain, 4096), in_steps(distorted, 4096), 4095};
  }
  return {};
}

/// The results of a library.
template <class Options> struct Golden {
  std::string library, call;
  Options options;
  std::string options_text;
  Kind kind;
  Extents shape;
  double value;
  std::optional<double> slope;  ///< slope of the value as x moves towards y
};

/// The value's slope as x moves towards y.
inline double slope(const TensorView& x_gradient, const Pictures& pictures) {
  const std::vector<double> gradient = to_doubles(x_gradient);
  const std::vector<double> x = to_doubles(pictures.x), y = to_doubles(pictures.y);
  double sum = 0;
  for (std::size_t i = 0; i < gradient.size(); ++i) sum += gradient[i] * (y[i] - x[i]);
  return sum;
}

/// A library in its version, the pictures, and a number.
template <class Options> std::string print(const testing::TestParamInfo<Golden<Options>>& info) {
  const Golden<Options>& golden = info.param;
  std::string text = fmt::format(
      "{}_{}_{}_{}", golden.library, name(golden.kind), joined(golden.shape, "_"), info.index);
  for (char& c : text) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return text;
}

/// Leaves in the test's report, from which scripts/accuracy.py makes docs/accuracy.md, how far
/// apart the library and similis are.
template <class Options>
void record(const Golden<Options>& golden, double difference, std::optional<double> of_slope) {
  testing::Test::RecordProperty("library", golden.library);
  testing::Test::RecordProperty("call", golden.call);
  testing::Test::RecordProperty("options", golden.options_text);
  testing::Test::RecordProperty("difference", fmt::format("{}", difference));
  if (of_slope) testing::Test::RecordProperty("slope_difference", fmt::format("{}", *of_slope));
}

/// Expects that value and slope are the library's on each backend. The function is a measure's
/// `…_value_and_gradient`.
template <class Options, class Function>
void expect_golden(const Golden<Options>& golden, const Function& value_and_gradient) {
  const Pictures each = pictures(golden.kind, golden.shape);
  Options options = golden.options;
  options.data_range = each.data_range;
  double difference = 0;
  std::optional<double> of_slope;
  for (const Backend& backend : backends()) {
    SCOPED_TRACE(backend.name);
    const ScopedBackend chosen(backend);
    const ValueAndGradient result =
        value_and_gradient(each.x, each.y, GradientOf::x, options, Execution{});
    const double of_value = std::abs(item(result.value) - golden.value);
    EXPECT_LT(of_value, 1e-6);
    difference = std::max(difference, of_value);
    if (!golden.slope) continue;
    const double found = slope(result.x_gradient, each);
    const double relative = found == *golden.slope ? 0 : std::abs(found / *golden.slope - 1);
    EXPECT_LT(relative, 1e-5);
    of_slope = std::max(of_slope.value_or(0), relative);
  }
  record(golden, difference, of_slope);
}

}  // namespace similis::test
