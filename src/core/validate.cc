// SPDX-License-Identifier: Apache-2.0
#include "src/core/validate.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include "src/core/require.h"
#include "src/core/tensor/dispatch.h"

namespace similis {
namespace {

// True if two different indices may reach the same element: sorted by stride, each axis must step
// over all that the finer ones span.
bool overlaps_itself(const TensorView& tensor) {
  std::vector<std::pair<std::int64_t, std::int64_t>> axes;  // step, extent
  for (int axis = 0; axis < tensor.shape.rank(); ++axis) {
    if (tensor.shape[axis] == 1) continue;
    axes.emplace_back(std::abs(tensor.strides[axis]), tensor.shape[axis]);
  }
  std::sort(axes.begin(), axes.end());
  std::int64_t span = 0;
  for (const auto& [step, extent] : axes) {
    if (step <= span) return true;
    span += (extent - 1) * step;
  }
  return false;
}

void require_own_places(const char* operation, const char* argument, const TensorView& tensor) {
  require(!overlaps_itself(tensor),
      "{}: {} has strides {} for shape {}; each element must have a place of its own", operation,
      argument, tensor.strides, tensor.shape);
}

// One element serves for a scalar, in any number of axes.
bool has_shape(const TensorView& view, const Extents& shape) {
  return view.shape == shape || (shape.rank() == 0 && view.shape.count() == 1);
}

}  // namespace

void require_result(const char* operation, const char* argument, const TensorView& result,
    const Extents& shape, const ResultDTypes& dtypes, const TensorView& like,
    const char* like_argument) {
  if (result.empty()) return;
  require(has_shape(result, shape), "{}: {} has shape {}; it must be that of the result, {}",
      operation, argument, result.shape, shape);
  require((result.dtype == DType::f32 && dtypes.f32) || (result.dtype == DType::f64 && dtypes.f64),
      "{}: {} is {}; it must be {}", operation, argument, result.dtype, dtypes.words);
  const Extents dense = dense_strides(result.shape);
  require(result.strides == dense, "{}: {} has strides {}; it must be dense, {}", operation,
      argument, result.strides, dense);
  require(result.device == like.device, "{}: {} is on {}; it must be on {} as {} is", operation,
      argument, result.device, like.device, like_argument);
}

void require_upstream(
    const char* operation, const TensorView& upstream, const Extents& shape, const TensorView& x) {
  if (upstream.empty()) return;
  require(has_shape(upstream, shape),
      "{}: upstream has shape {}; it must be that of the result, {}", operation, upstream.shape,
      shape);
  require(is_floating_point(upstream.dtype),
      "{}: upstream is {}; it must be float16, bfloat16, float32 or float64", operation,
      upstream.dtype);
  require(upstream.device == x.device, "{}: upstream is on {}; it must be on {} as x is", operation,
      upstream.device, x.device);
}

void require_alike(const char* operation, const TensorView& x, const TensorView& y) {
  require(y.shape == x.shape, "{}: y has shape {}; it must be that of x, {}", operation, y.shape,
      x.shape);
  require(*std::min_element(x.shape.begin(), x.shape.end()) > 0,
      "{}: x has shape {}; every extent must be at least 1", operation, x.shape);
  require(!x.empty() && !y.empty(), "{}: {} has no data", operation, x.empty() ? "x" : "y");
  require(y.dtype == x.dtype, "{}: y is {}; it must be {} as x is", operation, y.dtype, x.dtype);
  require(y.device == x.device, "{}: y is on {}; it must be on {} as x is", operation, y.device,
      x.device);
  require(x.device.kind == DeviceKind::cpu || !is_cpu_only(x.dtype),
      "{}: x is {} on {}; such images must be on the CPU, or be converted, as to float32",
      operation, x.dtype, x.device);
}

double data_range_of(const char* operation, std::optional<double> given, DType dtype) {
  if (given) return *given;
  require(dtype != DType::i16 && dtype != DType::i32,
      "{}: x is {}, which has no usual range; give data_range, the largest minus the smallest "
      "value that a pixel can take",
      operation, dtype);
  return dtype == DType::u8 ? 255 : dtype == DType::u16 ? 65535 : 1;
}

void require_gradient(
    const char* operation, const char* argument, const TensorView& gradient, const TensorView& x) {
  if (gradient.empty()) return;
  require(is_floating_point(x.dtype),
      "{}: {} is asked for, and the images are {}; gradients need "
      "float16, bfloat16, float32 or float64",
      operation, argument, x.dtype);
  require(gradient.shape == x.shape, "{}: {} has shape {}; it must be that of x, {}", operation,
      argument, gradient.shape, x.shape);
  require(gradient.dtype == x.dtype, "{}: {} is {}; it must be {} as x is", operation, argument,
      gradient.dtype, x.dtype);
  require(gradient.device == x.device, "{}: {} is on {}; it must be on {} as x is", operation,
      argument, gradient.device, x.device);
  require_own_places(operation, argument, gradient);
}

void require_in_place(const char* operation, const char* argument, const TensorView& tensor) {
  require(is_floating_point(tensor.dtype),
      "{}: {} is {}; it must be float16, bfloat16, float32 or float64", operation, argument,
      tensor.dtype);
  require_own_places(operation, argument, tensor);
}

}  // namespace similis
