// SPDX-License-Identifier: Apache-2.0
// B-spline coefficients of an image on the CPU: every line along each axis in turn. Lines that are
// not neighbours in memory are filtered where they are, one after another along a row, so that
// their cache lines are shared.
#include "src/warp/spline.h"
#include "src/core/parallel.h"
#include "src/warp/warp.h"

namespace similis::warp_internal {
namespace {

template <class T>
void filter_axis(const TensorView& image, int axis, Filter filter, const Execution& exec) {
  const std::int64_t count = image.shape[axis], stride = image.strides[axis];
  const std::int64_t outer =
      image.shape.count() / (count * stride);  // dense: [outer][count][stride]
  constexpr std::int64_t kLines = 16;
  const std::int64_t groups = (stride + kLines - 1) / kLines;
  parallel_for(exec, outer * groups, [&](std::int64_t task) {
    T* start = static_cast<T*>(image.data()) + task / groups * count * stride;
    const std::int64_t first = task % groups * kLines;
    for (std::int64_t i = first; i < first + kLines && i < stride; ++i) {
      filter_line(start + i, count, stride, filter == Filter::transposed);
    }
  });
}

}  // namespace

void spline_filter_cpu(const TensorView& image, int rank, Filter filter, const Execution& exec) {
  for (int axis = 5 - rank; axis < 5; ++axis) {
    if (image.dtype == DType::f64) {
      filter_axis<double>(image, axis, filter, exec);
    } else {
      filter_axis<float>(image, axis, filter, exec);
    }
  }
}

}  // namespace similis::warp_internal
