// SPDX-License-Identifier: Apache-2.0
// What LNCC's tests have in common: images with everything in them that goes wrong, and a call of
// the operation that returns what the reference returns.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "similis/lncc.hpp"
#include "src/core/doubles.h"
#include "src/core/require.h"
#include "src/lncc/reference.h"
#include "tests/arrays.h"
#include "tests/backends.h"
#include "tests/on_gpu.h"

namespace similis::lncc_internal {

constexpr Padding kPaddings[] = {Padding::valid, Padding::same, Padding::renormalize};
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

/// The shape of lncc()'s result.
inline Extents value_shape(const Extents& shape, const LnccOptions& options) {
  switch (options.reduction) {
    case Reduction::per_image: return {shape[0]};
    case Reduction::per_channel: return {shape[0], shape[1]};
    case Reduction::none: break;
    default: return {};
  }
  Extents map = shape;
  if (options.padding != Padding::valid) return map;
  const PerAxis<int>& window = options.window_size;
  map[shape.rank() - 1] -= window.x() - 1;
  map[shape.rank() - 2] -= window.y() - 1;
  if (shape.rank() == 5) map[2] -= window.z() - 1;
  return map;
}

/// Noise in [-0.5, 0.5) times `scale`, as large as lncc()'s result.
inline test::Array upstream_for(const Extents& shape, const LnccOptions& options,
    DType dtype = DType::f32, test::Layout layout = test::Layout::dense, double scale = 1) {
  return test::make(value_shape(shape, options), dtype, layout,
      [&](std::int64_t i) { return scale * (test::uniform(99, i) - 0.5); });
}

/// lncc_into() on the chosen backend: on the GPU with copies of everything, which come back.
inline void run_chosen(const TensorView& x, const TensorView& y, LnccRequest request,
    LnccOptions options, const Execution& exec) {
  if (!test::runs_on_gpu()) return lncc_into(x, y, request, options, exec);
  const test::OnGpu gpu_x(x), gpu_y(y), value(request.value), x_gradient(request.x_gradient),
      y_gradient(request.y_gradient), upstream(request.upstream), mask(options.mask),
      valid_mask(options.valid_mask);
  request.value = value.view();
  request.x_gradient = x_gradient.view();
  request.y_gradient = y_gradient.view();
  request.upstream = upstream.view();
  options.mask = mask.view();
  options.valid_mask = valid_mask.view();
  lncc_into(gpu_x.view(), gpu_y.view(), request, options, exec);
  for (const test::OnGpu* result : {&value, &x_gradient, &y_gradient}) result->bring_back();
}

/// What lncc_into() computes of a request that says where nothing goes; gradients lie in memory as
/// said, and it is checked that nothing around them is written.
inline Reference computed(const TensorView& x, const TensorView& y, LnccRequest request,
    const LnccOptions& options, bool by_x = true, bool by_y = true,
    test::Layout layout = test::Layout::dense, const Execution& exec = {}) {
  const Tensor value = allocate(value_shape(x.shape, options), result_dtype(x.dtype));
  test::Array x_gradient, y_gradient;
  if (by_x) x_gradient = test::filled(x.shape, x.dtype, layout, test::kUntouched);
  if (by_y) y_gradient = test::filled(x.shape, x.dtype, layout, test::kUntouched);
  request.value = value;
  request.x_gradient = x_gradient;
  request.y_gradient = y_gradient;
  run_chosen(x, y, request, options, exec);
  Reference result{.shape = value.shape, .value = to_doubles(value)};
  if (by_x) result.x_gradient = to_doubles(x_gradient);
  if (by_y) result.y_gradient = to_doubles(y_gradient);
  if ((by_x && !test::only_elements_written(x_gradient)) ||
      (by_y && !test::only_elements_written(y_gradient))) {
    throw Error("memory around a gradient was written, or a part of it was not");
  }
  return result;
}

/// What a result may differ by: values are f32, gradients have the images' dtype.
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
