// SPDX-License-Identifier: Apache-2.0
#include "src/pixel_error/walk.h"

#include <algorithm>
#include <cstdlib>

namespace similis::pixel_error_internal {
namespace {

std::int64_t stride(const TensorView& view, int axis) {
  return view.empty() ? 0 : view.strides[axis];
}

Axis axis_of(const Pass& pass, int axis) {
  return {.extent = pass.x.shape[axis],
      .stride = {stride(pass.x, axis), stride(pass.y, axis), stride(pass.x_gradient, axis),
          stride(pass.y_gradient, axis)}};
}

bool lies_outside(const Axis& a, const Axis& b) {
  if (a.stride.x != b.stride.x) return std::abs(a.stride.x) > std::abs(b.stride.x);
  return std::abs(a.stride.y) > std::abs(b.stride.y);
}

}  // namespace

Walk::Walk(const Pass& pass) : kept_axes_(pass.kept_axes) {
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

Offsets Walk::start_of_line(std::int64_t result, std::int64_t line) const {
  Offsets offsets;
  for (int i = rank_ - 2; i >= 0; --i) {
    const Axis& axis = axes_[static_cast<std::size_t>(i)];
    std::int64_t& index = i < kept_axes_ ? result : line;
    offsets = offsets + axis.stride * (index % axis.extent);
    index /= axis.extent;
  }
  return offsets;
}

Work::Work(const Pass& whole) : pass(whole), walk(whole) {
  const std::int64_t length = walk.line().extent;
  segments_of_line = (length + kSegment - 1) / kSegment;
  segments_of_task = std::max<std::int64_t>(1, kPixelsOfTask / std::min(length, kSegment));
  const std::int64_t segments = walk.lines() * segments_of_line;
  tasks_of_result = (segments + segments_of_task - 1) / segments_of_task;
}

}  // namespace similis::pixel_error_internal
