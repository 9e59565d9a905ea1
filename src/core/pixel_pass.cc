// SPDX-License-Identifier: Apache-2.0
#include "src/core/pixel_pass.h"

#include <algorithm>
#include <cstdlib>

#include "src/core/require.h"
#include "src/core/tensor/dispatch.h"
#include "src/core/tensor/reduction.h"
#include "src/core/validate.h"

namespace similis {
namespace {

using Axis = PixelWalk::Axis;

std::int64_t stride(const TensorView& view, int axis) {
  return view.empty() ? 0 : view.strides[axis];
}

Axis axis_of(const PixelPass& pass, int axis) {
  return {.extent = pass.x.shape[axis],
      .stride = {stride(pass.x, axis), stride(pass.y, axis), stride(pass.x_gradient, axis),
          stride(pass.y_gradient, axis), stride(pass.mask, axis)}};
}

bool lies_outside(const Axis& a, const Axis& b) {
  if (a.stride.x != b.stride.x) return std::abs(a.stride.x) > std::abs(b.stride.x);
  return std::abs(a.stride.y) > std::abs(b.stride.y);
}

}  // namespace

PixelPass pixel_pass(
    const char* operation, const TensorView& x, const TensorView& y, Reduction reduction) {
  require(x.shape.rank() >= 2, "{}: x has shape {}; it must have 2 to 8 axes, [N, C, ...]",
      operation, x.shape);
  require_alike(operation, x, y);
  PixelPass pass{
      .operation = operation, .x = x, .y = y, .result_shape = reduced_shape(x.shape, reduction)};
  pass.is_sum = reduction == Reduction::sum;
  if (!pass.is_sum) {
    pass.divisor = static_cast<double>(x.shape.count() / pass.result_shape.count());
  }
  return pass;
}

PixelPass pixel_pass(const OperationTable& operation, const TensorView& x, const TensorView& y,
    Reduction reduction) {
  const ReductionOptions options{.reduction = reduction};
  operation.check(&options);
  return pixel_pass(operation.name, x, y, reduction);
}

void require_results(const char* operation, const PixelPass& pass) {
  require_result(operation, "value", pass.value, pass.result_shape, kFloat32OrFloat64, pass.x);
  require_upstream(operation, pass.upstream, pass.result_shape, pass.x);
  require_gradient(operation, "x_gradient", pass.x_gradient, pass.x);
  require_gradient(operation, "y_gradient", pass.y_gradient, pass.x);
}

void store_result(const TensorView& value, std::int64_t result, double number) {
  if (value.dtype == DType::f64) {
    static_cast<double*>(value.data())[result] = number;
  } else {
    static_cast<float*>(value.data())[result] = static_cast<float>(number);
  }
}

double divisor_of(const PixelPass& pass, std::int64_t result) {
  return pass.divisors == nullptr ? pass.divisor : pass.divisors[result];
}

double gradient_scale(const PixelPass& pass, std::int64_t result) {
  const TensorView& upstream = pass.upstream;
  const double divisor = divisor_of(pass, result);
  if (divisor == 0) return 0;
  if (upstream.empty()) return 1 / divisor;
  std::int64_t offset = 0;
  for (int axis = upstream.shape.rank() - 1; axis >= 0; --axis) {
    offset += result % upstream.shape[axis] * upstream.strides[axis];
    result /= upstream.shape[axis];
  }
  return element(upstream, offset) / divisor;
}

PixelWalk::PixelWalk(const PixelPass& pass) : kept_axes_(pass.result_shape.rank()) {
  for (int axis = 0; axis < pass.x.shape.rank(); ++axis) {
    axes_[static_cast<std::size_t>(rank_++)] = axis_of(pass, axis);
  }
  axes_[static_cast<std::size_t>(rank_++)] = Axis{};  // there is always a line
  const auto summed = axes_.begin() + kept_axes_;
  auto end = std::remove_if(
      summed, axes_.begin() + rank_, [](const Axis& axis) { return axis.extent == 1; });
  std::stable_sort(summed, end, lies_outside);
  if (end == summed) *end++ = Axis{};
  auto last = summed;
  for (auto axis = summed + 1; axis != end; ++axis) {
    if (last->stride == axis->stride * axis->extent) {
      *last = {.extent = last->extent * axis->extent, .stride = axis->stride};
    } else {
      *++last = *axis;
    }
  }
  rank_ = static_cast<int>(last + 1 - axes_.begin());
  for (auto axis = axes_.begin(); axis != summed; ++axis) results_ *= axis->extent;
  for (auto axis = summed; axis != last; ++axis) lines_ *= axis->extent;
}

Offsets PixelWalk::start_of_line(std::int64_t result, std::int64_t line) const {
  Offsets offsets;
  for (int i = rank_ - 2; i >= 0; --i) {
    const Axis& axis = axes_[static_cast<std::size_t>(i)];
    std::int64_t& index = i < kept_axes_ ? result : line;
    offsets = offsets + axis.stride * (index % axis.extent);
    index /= axis.extent;
  }
  return offsets;
}

PixelWork::PixelWork(const PixelPass& whole) : pass(whole), walk(whole) {
  const std::int64_t length = walk.line().extent;
  segments_of_line = (length + kSegment - 1) / kSegment;
  segments_of_task = std::max<std::int64_t>(1, kPixelsOfTask / std::min(length, kSegment));
  const std::int64_t segments = walk.lines() * segments_of_line;
  tasks_of_result = (segments + segments_of_task - 1) / segments_of_task;
}

std::pair<std::int64_t, std::int64_t> PixelWork::segments_of(std::int64_t task) const {
  const std::int64_t first = task % tasks_of_result * segments_of_task;
  return {first, std::min(first + segments_of_task, walk.lines() * segments_of_line)};
}

PixelSegment PixelWork::segment(std::int64_t task, std::int64_t index) const {
  const PixelWalk::Axis& line = walk.line();
  const std::int64_t start = index % segments_of_line * kSegment;
  const Offsets offsets = walk.start_of_line(result_of(task), index / segments_of_line);
  return {.start = offsets + line.stride * start,
      .stride = line.stride,
      .count = std::min(kSegment, line.extent - start)};
}

void PixelWork::write_value(const double* sums) const {
  for (std::int64_t result = 0; result < walk.results(); ++result) {
    double sum = 0;
    for (std::int64_t i = 0; i < tasks_of_result; ++i) sum += sums[result * tasks_of_result + i];
    store_result(pass.value, result, sum / divisor_of(pass, result));
  }
}

}  // namespace similis
