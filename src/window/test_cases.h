// SPDX-License-Identifier: Apache-2.0
// The common part of the tests of windowed operations: the shapes of results, and a call of the
// operation that returns its results as its reference does. Options have a reduction, and some a
// padding, a window_size and masks; requests hold the views of value, gradients and upstream.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "similis/window.hpp"
#include "src/core/require.h"
#include "src/core/tensor/doubles.h"
#include "src/core/tensor/reduction.h"
#include "tests/arrays.h"
#include "tests/backends.h"
#include "tests/on_gpu.h"

namespace similis::window_test {

constexpr Reduction kReductions[] = {
    Reduction::mean, Reduction::sum, Reduction::none, Reduction::per_image, Reduction::per_channel};

inline std::string name(Padding padding) {
  static const char* const names[] = {"valid", "same", "reflect", "replicate", "renormalize"};
  return names[static_cast<std::size_t>(padding)];
}
inline std::string name(Reduction reduction) {
  static const char* const names[] = {"mean", "sum", "none", "per_image", "per_channel"};
  return names[static_cast<std::size_t>(reduction)];
}

struct Pair {
  test::Array x, y;
};

/// The shape of the operation's result.
template <class Options> Extents value_shape(const Extents& shape, const Options& options) {
  Extents map = shape;
  if constexpr (requires { options.padding; }) {
    if (options.padding == Padding::valid) {
      const PerAxis<int>& window = options.window_size;
      map[shape.rank() - 1] -= window.x() - 1;
      map[shape.rank() - 2] -= window.y() - 1;
      if (shape.rank() == 5) map[2] -= window.z() - 1;
    }
  }
  return reduced_shape(shape, options.reduction, map);
}

/// Noise in [-0.5, 0.5) times `scale`, as large as the operation's result.
template <class Options>
test::Array upstream_for(const Extents& shape, const Options& options, DType dtype = DType::f32,
    test::Layout layout = test::Layout::dense, double scale = 1) {
  return test::make(value_shape(shape, options), dtype, layout,
      [&](std::int64_t i) { return scale * (test::uniform(99, i) - 0.5); });
}

/// operation(x, y, request, options, exec) on the chosen backend: on the GPU with copies of
/// everything, which come back.
template <class Operation, class Request, class Options>
void run_chosen(const Operation& operation, const TensorView& x, const TensorView& y,
    Request request, Options options, const Execution& exec) {
  if (!test::runs_on_gpu()) return operation(x, y, request, options, exec);
  std::deque<test::OnGpu> copies;
  const auto there = [&](const TensorView& view) { return copies.emplace_back(view).view(); };
  request.upstream = there(request.upstream);
  if constexpr (requires { request.middle; }) request.middle = there(request.middle);
  if constexpr (requires { options.mask; }) options.mask = there(options.mask);
  if constexpr (requires { options.valid_mask; }) options.valid_mask = there(options.valid_mask);
  const test::OnGpu value(request.value), x_gradient(request.x_gradient),
      y_gradient(request.y_gradient);
  request.value = value.view();
  request.x_gradient = x_gradient.view();
  request.y_gradient = y_gradient.view();
  operation(there(x), there(y), request, options, exec);
  for (const test::OnGpu* result : {&value, &x_gradient, &y_gradient}) result->bring_back();
}

/// The gradients that a call computes, and their layout in memory.
struct Wanted {
  bool by_x = true, by_y = true;
  test::Layout layout = test::Layout::dense;
};

/// Runs the operation with memory for the results of a request, and checks that nothing around the
/// gradients is written.
template <class Reference, class Operation, class Request, class Options>
Reference computed_by(const Operation& operation, const TensorView& x, const TensorView& y,
    Request request, const Options& options, const Wanted& wanted, const Execution& exec) {
  const Tensor value = allocate(value_shape(x.shape, options), result_dtype(x.dtype));
  test::Array x_gradient, y_gradient;
  if (wanted.by_x) x_gradient = test::filled(x.shape, x.dtype, wanted.layout, test::kUntouched);
  if (wanted.by_y) y_gradient = test::filled(x.shape, x.dtype, wanted.layout, test::kUntouched);
  request.value = value;
  request.x_gradient = x_gradient;
  request.y_gradient = y_gradient;
  run_chosen(operation, x, y, request, options, exec);
  Reference result{.shape = value.shape, .value = to_doubles(value)};
  if (wanted.by_x) result.x_gradient = to_doubles(x_gradient);
  if (wanted.by_y) result.y_gradient = to_doubles(y_gradient);
  if ((wanted.by_x && !test::only_elements_written(x_gradient)) ||
      (wanted.by_y && !test::only_elements_written(y_gradient))) {
    throw Error("memory around a gradient was written, or a part of it was not");
  }
  return result;
}

}  // namespace similis::window_test
