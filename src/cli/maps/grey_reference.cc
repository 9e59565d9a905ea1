// SPDX-License-Identifier: Apache-2.0
#include "src/cli/maps/grey_reference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>

#include "similis/execution.hpp"
#include "src/cli/inputs/rows.h"
#include "src/core/tensor/dispatch.h"
#include "src/media/picture/image.h"
#include "src/media/video/video.h"

namespace similis::cli {
namespace {

// Calls visit(index, value) for each element, in row-major order.
template <class Visit> void for_each_element(const TensorView& values, const Visit& visit) {
  visit_dtype(values.dtype, [&]<class T>(std::type_identity<T>) {
    const auto* const first = static_cast<const T*>(values.data());
    const std::int64_t columns = values.shape[values.shape.rank() - 1];
    const std::int64_t stride = row_stride(values);
    for (std::int64_t row = 0; row < row_count(values.shape); ++row) {
      const T* const from = first + row_offset(values, row);
      for (std::int64_t x = 0; x < columns; ++x) {
        visit(row * columns + x, static_cast<double>(load(from[x * stride])));
      }
    }
  });
}

// A picture as it was read, without its alpha.
TensorView stored(const media::Image& image) {
  const void* samples = image.samples8.data();
  DType dtype = DType::u8;
  if (image.bit_depth == 16) {
    samples = image.samples16.data();
    dtype = DType::u16;
  } else if (image.has_floats()) {
    samples = image.samples_float.data();
    dtype = DType::f32;
  }
  const std::int64_t row = image.width * image.channels;
  const int colors = image.channels - (image.has_alpha() ? 1 : 0);
  return {samples, {1, colors, image.height, image.width},
      {image.height * row, 1, row, image.channels}, dtype};
}

double largest_code(int bit_depth) {
  return bit_depth == media::kFloatBits ? 1 : static_cast<double>((1 << bit_depth) - 1);
}

}  // namespace

std::pair<double, double> finite_limits(const TensorView& values) {
  double least = std::numeric_limits<double>::infinity(), largest = -least;
  for_each_element(values, [&](std::int64_t, double value) {
    if (!std::isfinite(value)) return;
    least = std::min(least, value);
    largest = std::max(largest, value);
  });
  return least > largest ? std::pair(0.0, 0.0) : std::pair(least, largest);
}

Tensor grey(const TensorView& values, double least, double largest) {
  Extents shape = values.shape;
  const std::int64_t channels = shape[1];
  shape[1] = 1;
  const Tensor picture = allocate(shape, DType::f32);
  float* const to = picture.elements<float>();
  std::fill_n(to, shape.count(), 0.0F);
  const double scale =
      1 / ((largest > least ? largest - least : 1) * static_cast<double>(channels));
  for_each_element(values, [&](std::int64_t i, double value) {
    to[i % shape.count()] += static_cast<float>((value - least) * scale);  // one image: N is 1
  });
  return picture;
}

Tensor grey_reference(const FramePair& frames) {
  if (frames.reference.shape.rank() == 5) {
    const auto [least, largest] = finite_limits(frames.reference);
    return grey(frames.reference, least, largest);
  }
  if (!frames.reference.empty()) return grey(frames.reference, 0, frames.data_range);
  if (frames.as_read.video) {
    const VideoFrameAsRead& side = (*frames.as_read.video)[0];
    const TensorView luma = side.frame->plane(*side.format, 0);
    const Extents shape = {1, 1, luma.shape[0], luma.shape[1]};
    return grey(
        luma.reshaped(shape, dense_strides(shape)), 0, largest_code(side.format->pixels.bit_depth));
  }
  const media::Image& image = (*frames.as_read.pictures)[0].image;
  return grey(stored(image), 0, largest_code(image.bit_depth));
}

}  // namespace similis::cli
