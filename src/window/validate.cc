// SPDX-License-Identifier: Apache-2.0
#include "src/window/validate.h"

#include <algorithm>
#include <cmath>

#include "src/core/require.h"
#include "src/core/tensor/dispatch.h"
#include "src/core/tensor/reduction.h"

namespace similis {
void require_image_pair(const char* operation, const TensorView& x, const TensorView& y) {
  require(x.shape.rank() == 4 || x.shape.rank() == 5,
      "{}: x has shape {}; it must be [N,C,H,W] or [N,C,D,H,W]", operation, x.shape);
  require(x.dtype != DType::u16,
      "{}: x is {}; it must be uint8, float16, bfloat16, float32 or float64", operation, x.dtype);
  require_alike(operation, x, y);
}

namespace {

// Numbers are sums in f64; a map has the images' precision.
void require_value_dtype(
    const char* operation, DType value, DType images, const Extents& result_shape) {
  const bool is_map = result_shape.rank() > 2;
  require(
      value == result_dtype(images) || (!is_map && (value == DType::f32 || value == DType::f64)),
      "{}: value is {}; it must be {} for {} images", operation, value,
      is_map ? name(result_dtype(images)) : "float32 or float64", images);
}

}  // namespace

void require_result(const char* operation, const TensorView& value, const TensorView& upstream,
    const TensorView& x, const Extents& shape) {
  const auto has_shape = [&](const TensorView& view) {
    return view.shape == shape || (shape.rank() == 0 && view.shape.count() == 1);
  };
  if (!value.empty()) {
    require(has_shape(value) && value.strides == dense_strides(value.shape),
        "{}: value has shape {} and strides {}; it must be dense with shape {}", operation,
        value.shape, value.strides, shape);
    require_value_dtype(operation, value.dtype, x.dtype, shape);
    require(value.device == x.device, "{}: value is on {}; it must be on {} as x is", operation,
        value.device, x.device);
  }
  if (!upstream.empty()) {
    require(has_shape(upstream), "{}: upstream has shape {}; it must be that of the result, {}",
        operation, upstream.shape, shape);
    require(is_floating_point(upstream.dtype),
        "{}: upstream is {}; it must be float16, bfloat16, float32 or float64", operation,
        upstream.dtype);
    require(upstream.device == x.device, "{}: upstream is on {}; it must be on {} as x is",
        operation, upstream.device, x.device);
  }
}

// The taps of a wider window alone would fill memories.
constexpr int kMaxWindowSize = 65535;

Window gaussian_window(const char* operation, const PerAxis<int>& window_size,
    const PerAxis<double>& sigma, const Extents& image_shape) {
  const int spatial = image_shape.rank() - 2;
  const auto taps = [&](int size, double deviation) {
    require(size > 0 && size % 2 == 1, "{}: window_size is {}; it must be odd and positive",
        operation, size);
    require(size <= kMaxWindowSize, "{}: window_size is {}; it must be at most {}", operation, size,
        kMaxWindowSize);
    require(deviation > 0 && std::isfinite(deviation), "{}: sigma is {}; it must be positive",
        operation, deviation);
    return gaussian_taps(size, deviation);
  };
  require(window_size.count() == 1 || window_size.count() == spatial,
      "{}: window_size has {} numbers; it takes one, or one for each of the {} axes", operation,
      window_size.count(), spatial);
  require(sigma.count() == 1 || sigma.count() == spatial,
      "{}: sigma has {} numbers; it takes one, or one for each of the {} axes", operation,
      sigma.count(), spatial);
  Window window{
      .z = {1.0}, .y = taps(window_size.y(), sigma.y()), .x = taps(window_size.x(), sigma.x())};
  if (spatial == 3) window.z = taps(window_size.z(), sigma.z());
  return window;
}

void require_room_for_window(
    const char* operation, const Extents& image_shape, const Window& window, Padding padding) {
  const int last = image_shape.rank() - 1;
  const auto check = [&](const char* axis, std::int64_t extent, std::int64_t radius) {
    require(padding != Padding::valid || extent >= 2 * radius + 1,
        "{}: {} is {}; with padding valid it must be at least window_size, {}", operation, axis,
        extent, 2 * radius + 1);
    require(padding != Padding::reflect || extent > radius,
        "{}: {} is {}; with padding reflect it must be more than half the window, {}", operation,
        axis, extent, radius);
  };
  if (image_shape.rank() == 5) check("depth", image_shape[2], window.radius_z());
  check("height", image_shape[last - 1], window.radius_y());
  check("width", image_shape[last], window.radius_x());
}

TensorView as_volumes(const TensorView& images) {
  if (images.shape.rank() != 4) return images;
  const Extents &shape = images.shape, &strides = images.strides;
  return images.reshaped({shape[0], shape[1], 1, shape[2], shape[3]},
      {strides[0], strides[1], 0, strides[2], strides[3]});
}

Extents map_shape(const Extents& volumes, const Window& window, Padding padding) {
  Extents shape = volumes;
  if (padding != Padding::valid) return shape;
  shape[2] -= 2 * window.radius_z();
  shape[3] -= 2 * window.radius_y();
  shape[4] -= 2 * window.radius_x();
  return shape;
}

Extents result_shape(const Extents& images, Reduction reduction, const Extents& map) {
  if (images.rank() == 5) return reduced_shape(images, reduction, map);
  return reduced_shape(images, reduction, {map[0], map[1], map[3], map[4]});
}

TensorView as_upstream(const TensorView& upstream, const Extents& result_shape) {
  if (result_shape.rank() > 0) return upstream;
  return upstream.reshaped({}, {});
}

TensorView broadcast_mask(
    const char* operation, const char* argument, const TensorView& mask, const TensorView& x) {
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
  TensorView view = mask;
  view.shape = x.shape;
  view.strides = x.strides;
  for (int axis = 0; axis < rank; ++axis) {
    const bool is_own = axis >= missing && mask.shape[axis - missing] == x.shape[axis];
    view.strides[axis] = is_own ? mask.strides[axis - missing] : 0;
  }
  return as_volumes(view);
}

}  // namespace similis
