// SPDX-License-Identifier: Apache-2.0
// Arrays for tests: any dtype, laid out in memory in every way that a caller may have, with values
// from a formula that needs no file; and how far apart two of them are.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "similis/execution.hpp"
#include "similis/tensor.hpp"
#include "src/core/tensor/dispatch.h"
#include "src/core/tensor/doubles.h"

namespace similis::test {

/// The layout of an array in memory.
enum class Layout : std::uint8_t {
  dense,
  channels_last,  ///< axis 1 innermost
  permuted,       ///< axes in the opposite order
  reversed,       ///< negative strides
  sliced,         ///< every second element of a larger array
  expanded,       ///< stride 0 along the first two axes: all images and channels are one
  offset,         ///< dense, a few elements after where its memory begins
};

constexpr Layout kLayouts[] = {Layout::dense, Layout::channels_last, Layout::permuted,
    Layout::reversed, Layout::sliced, Layout::expanded, Layout::offset};

inline std::string name(Layout layout) {
  switch (layout) {
    case Layout::dense: return "dense";
    case Layout::channels_last: return "channels_last";
    case Layout::permuted: return "permuted";
    case Layout::reversed: return "reversed";
    case Layout::sliced: return "sliced";
    case Layout::expanded: return "expanded";
    case Layout::offset: return "offset";
  }
  return "unknown";
}

/// Uniform in [0, 1): multiples of 2⁻²⁴, so that f32 holds them. tests/golden/make_golden.py has
/// the same function.
inline double uniform(std::uint32_t seed, std::int64_t index) {
  std::uint32_t bits = static_cast<std::uint32_t>(index) * 0x9e3779b9u + seed * 0x85ebca6bu;
  bits = (bits ^ bits >> 16) * 0x21f0aaadu;
  bits = (bits ^ bits >> 15) * 0x735a2d97u;
  bits ^= bits >> 15;
  return static_cast<double>(bits >> 8) * 0x1p-24;
}

/// Axes from the outermost in memory to the innermost.
inline std::vector<int> memory_order(int rank, Layout layout) {
  std::vector<int> order;
  for (int axis = 0; axis < rank; ++axis) order.push_back(axis);
  if (layout == Layout::permuted) std::reverse(order.begin(), order.end());
  if (layout == Layout::channels_last && rank > 2)
    std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return order;
}

/// An array and all the memory that it lies in.
struct Array : Tensor {
  TensorView memory;
};

/// An array in which all memory, also around its elements, is `filler`.
inline Array filled(const Extents& shape, DType dtype, Layout layout, double filler) {
  const std::int64_t step = layout == Layout::sliced ? 2 : 1;
  Extents strides = shape;
  std::int64_t count = 1, start = layout == Layout::offset ? 3 : 0;
  const std::vector<int> order = memory_order(shape.rank(), layout);
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    const bool repeated = layout == Layout::expanded && *axis < 2;
    strides[*axis] = repeated ? 0 : count * step;
    if (!repeated) count *= shape[*axis] * step + (step - 1);
    if (layout == Layout::reversed) {
      start += (shape[*axis] - 1) * strides[*axis];
      strides[*axis] = -strides[*axis];
    }
  }
  const std::int64_t memory = count + 1 + (layout == Layout::offset ? start : 0);
  Array result;
  static_cast<Tensor&>(result) = allocate({memory}, dtype);
  result.memory = result;
  visit_dtype(dtype, [&]<class T>(std::type_identity<T>) {
    T element{};
    store(filler, &element);
    std::fill_n(result.elements<T>(), memory, element);
  });
  result.shape = shape;
  result.strides = strides;
  result.offset = start;
  return result;
}

/// Memory for results is filled with it; every dtype but the integers holds it.
constexpr double kUntouched = -16384;

/// True if all elements of a result were written and nothing around them.
inline bool only_elements_written(const Array& array) {
  const std::vector<double> all = to_doubles(array.memory);
  return std::count(all.begin(), all.end(), kUntouched) ==
         static_cast<std::int64_t>(all.size()) - array.shape.count();
}

/// The offset of the element with this row-major index.
inline std::int64_t offset_of(const TensorView& view, std::int64_t index) {
  std::int64_t offset = 0;
  for (int axis = view.shape.rank() - 1; axis >= 0; --axis) {
    offset += index % view.shape[axis] * view.strides[axis];
    index /= view.shape[axis];
  }
  return offset;
}

/// An array whose element with row-major index i is value(i), rounded to dtype. Memory between the
/// elements is NaN (100 for integers): who reads it is found out.
template <class Value>
Array make(const Extents& shape, DType dtype, Layout layout, const Value& value) {
  const Array result = filled(shape, dtype, layout,
      is_floating_point(dtype) ? std::numeric_limits<double>::quiet_NaN() : 100);
  visit_dtype(dtype, [&]<class T>(std::type_identity<T>) {
    T* element = static_cast<T*>(result.data());
    const std::int64_t count = shape.count();
    std::vector<std::int64_t> index(static_cast<std::size_t>(shape.rank()));
    for (std::int64_t i = 0; i < count; ++i) {
      store(static_cast<double>(value(i)), element);
      for (int axis = shape.rank() - 1; axis >= 0; --axis) {
        std::int64_t& along = index[static_cast<std::size_t>(axis)];
        element += result.strides[axis];
        if (++along < shape[axis]) break;
        element -= along * result.strides[axis];
        along = 0;
      }
    }
  });
  return result;
}

/// Uniform noise in [0, range).
inline Array noise(
    const Extents& shape, DType dtype, Layout layout, std::uint32_t seed, double range) {
  return make(shape, dtype, layout, [&](std::int64_t i) { return range * uniform(seed, i); });
}

/// |actual - expected| / |expected|, Euclidean norms; 0 where both are 0. A NaN that is expected is
/// equal to a NaN; with any other the result is NaN.
inline double relative_l2(const std::vector<double>& actual, const std::vector<double>& expected) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i]) && std::isnan(actual.at(i))) continue;
    error += (actual.at(i) - expected[i]) * (actual.at(i) - expected[i]);
    norm += expected[i] * expected[i];
  }
  return error == 0 ? 0 : std::sqrt(error / norm);
}

/// The largest |actual - expected|; infinite if any is NaN but where NaN is expected.
inline double max_difference(
    const std::vector<double>& actual, const std::vector<double>& expected) {
  double largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i]) && std::isnan(actual.at(i))) continue;
    const double difference = std::abs(actual.at(i) - expected[i]);
    if (!(difference <= largest)) largest = difference;
    if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
  }
  return largest;
}

/// The largest magnitude.
inline double largest(const std::vector<double>& values) {
  double result = 0;
  for (const double value : values) result = std::max(result, std::abs(value));
  return result;
}

}  // namespace similis::test
