// SPDX-License-Identifier: Apache-2.0
// B-spline coefficients of an image on the CPU: every line along each axis in turn. Lines that are
// neighbours in memory are filtered together, a vector of them at a time; those along x are copied
// to a buffer in which they are. The bits are filter_line()'s.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/warp/cpu/spline.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "src/core/parallel.h"
#include "src/warp/spline.h"
#include "src/warp/warp.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {

constexpr std::int64_t kMostLines = 64;  // their rows of 1024 voxels fit the second-level cache

// Filters `lines` lines, whose samples k lie side by side at rows + k·stride.
template <class T>
void filter_side_by_side(T* HWY_RESTRICT rows, std::int64_t lines, std::int64_t count,
    std::int64_t stride, bool is_transposed) {
  const auto scale = [=](std::int64_t k, T factor) HWY_ATTR {
    T* row = rows + k * stride;
    for (std::int64_t i = 0; i < lines && is_transposed; ++i) row[i] *= factor;
  };
  alignas(64) double value[kMostLines], before[kMostLines];
  const auto keep = [&](std::int64_t k) HWY_ATTR {
    T* row = rows + k * stride;
    for (std::int64_t i = 0; i < lines; ++i) row[i] = static_cast<T>(value[i]);
  };
  scale(0, 2), scale(count - 1, 2);
  MirroredSum start(count);
  for (std::int64_t i = 0; i < lines; ++i) value[i] = static_cast<double>(rows[i]);
  for (std::int64_t k = 1; k < start.end; ++k) {
    const double weight = start.weight(k);
    const T* row = rows + k * stride;
    for (std::int64_t i = 0; i < lines; ++i) value[i] += weight * static_cast<double>(row[i]);
  }
  for (std::int64_t i = 0; i < lines; ++i) value[i] = value[i] / start.divisor * 6;
  keep(0);
  for (std::int64_t k = 1; k < count; ++k) {
    if (k == count - 1) std::copy_n(value, lines, before);
    T* row = rows + k * stride;
    for (std::int64_t i = 0; i < lines; ++i) {
      value[i] = causal_step(static_cast<double>(row[i]), value[i]);
      row[i] = static_cast<T>(value[i]);
    }
  }
  for (std::int64_t i = 0; i < lines; ++i) value[i] = anticausal_start(value[i], before[i]);
  keep(count - 1);
  for (std::int64_t k = count - 2; k >= 0; --k) {
    T* row = rows + k * stride;
    for (std::int64_t i = 0; i < lines; ++i) {
      value[i] = anticausal_step(static_cast<double>(row[i]), value[i]);
      row[i] = static_cast<T>(value[i]);
    }
  }
  scale(0, T{1} / 2), scale(count - 1, T{1} / 2);
}

// Filters dense lines that follow each other.
template <class T>
void filter_in_a_buffer(T* first, std::int64_t lines, std::int64_t count, bool is_transposed) {
  constexpr std::int64_t kAtOnce = 16;  // samples: one or two cache lines of each line
  std::vector<T> buffer(static_cast<std::size_t>(lines * count));
  const auto copy = [&](const auto& move) HWY_ATTR {
    for (std::int64_t k = 0; k < count; k += kAtOnce) {
      const std::int64_t end = std::min(k + kAtOnce, count);
      for (std::int64_t i = 0; i < lines; ++i) {
        for (std::int64_t at = k; at < end; ++at) {
          move(first[i * count + at], buffer[static_cast<std::size_t>(at * lines + i)]);
        }
      }
    }
  };
  copy([](const T& sample, T& of_buffer) { of_buffer = sample; });
  filter_side_by_side(buffer.data(), lines, count, lines, is_transposed);
  copy([](T& sample, const T& of_buffer) { sample = of_buffer; });
}

// Dense: [outer][count][stride]; a task filters some lines, at most kMostLines.
template <class T>
void filter_axis(const TensorView& image, int axis, Filter filter, const Execution& exec) {
  const std::int64_t count = image.shape[axis], stride = image.strides[axis];
  if (count == 1) return;
  T* const data = static_cast<T*>(image.data());
  const std::int64_t outer = image.shape.count() / (count * stride);
  const bool is_transposed = filter == Filter::transposed;
  if (stride == 1) {
    constexpr std::int64_t kLines = 16;
    return parallel_for(exec, (outer + kLines - 1) / kLines, [=](std::int64_t task) {
      const std::int64_t line = task * kLines;
      filter_in_a_buffer(data + line * count, std::min(kLines, outer - line), count, is_transposed);
    });
  }
  const std::int64_t groups = (stride + kMostLines - 1) / kMostLines;
  parallel_for(exec, outer * groups, [=](std::int64_t task) {
    const std::int64_t first = task % groups * kMostLines;
    filter_side_by_side(data + task / groups * count * stride + first,
        std::min(kMostLines, stride - first), count, stride, is_transposed);
  });
}

void filter_axes(const TensorView& image, int rank, Filter filter, const Execution& exec) {
  for (int axis = 5 - rank; axis < 5; ++axis) {
    if (image.dtype == DType::f64) {
      filter_axis<double>(image, axis, filter, exec);
    } else {
      filter_axis<float>(image, axis, filter, exec);
    }
  }
}

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::warp_internal {
HWY_EXPORT(filter_axes);

void spline_filter_cpu(const TensorView& image, int rank, Filter filter, const Execution& exec) {
  HWY_DYNAMIC_DISPATCH(filter_axes)(image, rank, filter, exec);
}

}  // namespace similis::warp_internal
#endif
