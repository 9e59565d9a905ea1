// SPDX-License-Identifier: Apache-2.0
#include "src/core/images.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "src/core/parallel.h"
#include "src/core/require.h"
#include "src/core/tensor/dispatch.h"
#include "src/core/tensor/reduction.h"
#include "src/core/validate.h"

namespace similis {
namespace {

constexpr std::int64_t kWeightsOfTask = 65536;  // enough to hide the cost of starting a task

// NaN is none.
template <class T> bool is_weight(T value) {
  return value >= 0 && value <= std::numeric_limits<T>::max();
}

// The first of `count` elements that is no weight, as a double.
template <class T>
std::optional<double> find_no_weight(const T* row, std::int64_t count, std::int64_t stride) {
  bool found = false;  // no early exit: a loop of comparisons becomes vectors
  for (std::int64_t i = 0; i < count; ++i) found |= !is_weight(load(row[i * stride]));
  for (std::int64_t i = 0; found && i < count; ++i) {
    const auto value = load(row[i * stride]);
    if (!is_weight(value)) return static_cast<double>(value);
  }
  return std::nullopt;
}

void require_weights(
    const char* operation, const char* argument, const TensorView& mask, const Execution& exec) {
  const bool may_be_none =
      is_floating_point(mask.dtype) || mask.dtype == DType::i16 || mask.dtype == DType::i32;
  if (mask.device.kind != DeviceKind::cpu || !may_be_none) return;
  TensorView rows = mask;  // one element of each axis whose elements are the same
  if (mask.shape.rank() == 0) rows = mask.reshaped({1}, {0});
  for (int axis = 0; axis < rows.shape.rank(); ++axis) {
    if (rows.strides[axis] == 0) rows.shape[axis] = 1;
  }
  const int last = rows.shape.rank() - 1;
  const std::int64_t length = rows.shape[last], count = rows.shape.count() / length;
  const std::int64_t rows_of_task = std::max<std::int64_t>(1, kWeightsOfTask / length);
  const std::int64_t tasks = (count + rows_of_task - 1) / rows_of_task;
  std::vector<std::optional<double>> found(static_cast<std::size_t>(tasks));
  const auto look = [&](std::int64_t task) {
    const std::int64_t end = std::min(count, (task + 1) * rows_of_task);
    for (std::int64_t row = task * rows_of_task; row < end; ++row) {
      std::int64_t offset = 0, rest = row;
      for (int axis = last - 1; axis >= 0; --axis) {
        offset += rest % rows.shape[axis] * rows.strides[axis];
        rest /= rows.shape[axis];
      }
      visit_dtype(rows.dtype, [&]<class T>(std::type_identity<T>) {
        const T* const first = static_cast<const T*>(rows.data()) + offset;
        std::optional<double>& own = found[static_cast<std::size_t>(task)];
        if (!own) own = find_no_weight(first, length, rows.strides[last]);
      });
    }
  };
  if (tasks == 1) {
    look(0);
  } else {
    parallel_for(exec, tasks, look);
  }
  for (const std::optional<double>& value : found) {
    require(!value, "{}: {} holds {}; each weight must be a finite number of 0 or more", operation,
        argument, value.value_or(0));
  }
}

}  // namespace

void require_image_pair(const char* operation, const TensorView& x, const TensorView& y) {
  require(x.shape.rank() == 4 || x.shape.rank() == 5,
      "{}: x has shape {}; it must be [N,C,H,W] or [N,C,D,H,W]", operation, x.shape);
  require_alike(operation, x, y);
  require(x.dtype != DType::u16 || x.device.kind == DeviceKind::cpu,
      "{}: x is {} on {}; there it must be uint8, float16, bfloat16, float32 or float64", operation,
      x.dtype, x.device);
}

void require_result(const char* operation, const TensorView& value, const TensorView& upstream,
    const TensorView& x, const Extents& shape) {
  const bool is_map = shape.rank() > 2;  // numbers are sums in f64; a map has the images' precision
  const bool is_f64 = result_dtype(x.dtype) == DType::f64;
  require_result(operation, "value", value, shape,
      !is_map  ? kFloat32OrFloat64
      : is_f64 ? kFloat64
               : kFloat32,
      x);
  require_upstream(operation, upstream, shape, x);
}

TensorView as_volumes(const TensorView& images) {
  if (images.shape.rank() != 4) return images;
  const Extents &shape = images.shape, &strides = images.strides;
  return images.reshaped({shape[0], shape[1], 1, shape[2], shape[3]},
      {strides[0], strides[1], 0, strides[2], strides[3]});
}

Extents result_shape(const Extents& images, Reduction reduction, const Extents& map) {
  if (images.rank() == 5) return reduced_shape(images, reduction, map);
  return reduced_shape(images, reduction, {map[0], map[1], map[3], map[4]});
}

Extents sums_shape(const Extents& images, int terms) {
  return {std::int64_t{2} * terms, images[0], images[1]};
}

void require_sums(const char* operation, const TensorView& value, const TensorView& upstream,
    const TensorView& x, const Extents& shape) {
  require_result(operation, "value", value, shape, kFloat64, x);
  require_upstream(operation, upstream, shape, x);
}

TensorView sums_of_term(const TensorView& sums, int term) {
  if (sums.empty()) return sums;
  TensorView of_term =
      sums.reshaped({sums.shape[1], sums.shape[2]}, {sums.strides[1], sums.strides[2]});
  of_term.offset += std::int64_t{2} * term * sums.strides[0];
  return of_term;
}

TensorView as_upstream(const TensorView& upstream, const Extents& result_shape) {
  if (result_shape.rank() > 0 || upstream.empty()) return upstream;
  return upstream.reshaped({}, {});
}

TensorView broadcast_mask(const char* operation, const char* argument, const TensorView& mask,
    const TensorView& x, const Execution& exec) {
  if (mask.empty()) return mask;
  const int rank = x.shape.rank(), missing = rank - mask.shape.rank();
  bool fits = missing >= 0 && missing <= 2;
  for (int axis = std::max(missing, 0); fits && axis < rank; ++axis) {
    const std::int64_t extent = mask.shape[axis - missing];
    fits = extent == x.shape[axis] || (axis < 2 && extent == 1);
  }
  require(fits,
      "{}: {} has shape {}; it must be the images' {}, with N and C left out or 1 where "
      "it is the same for all",
      operation, argument, mask.shape, x.shape);
  require(mask.device == x.device, "{}: {} is on {}; it must be on {} as x is", operation, argument,
      mask.device, x.device);
  require(mask.device.kind == DeviceKind::cpu || mask.dtype == DType::boolean ||
              !is_cpu_only(mask.dtype),
      "{}: {} is {} on {}; there it must be bool, uint8, uint16 or a float", operation, argument,
      mask.dtype, mask.device);
  require_weights(operation, argument, mask, exec);
  TensorView view = mask;
  if (mask.dtype == DType::boolean) view.dtype = DType::u8;
  view.shape = x.shape;
  view.strides = x.strides;
  for (int axis = 0; axis < rank; ++axis) {
    const bool is_own = axis >= missing && mask.shape[axis - missing] == x.shape[axis];
    view.strides[axis] = is_own ? mask.strides[axis - missing] : 0;
  }
  return view;
}

}  // namespace similis
