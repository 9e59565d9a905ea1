// SPDX-License-Identifier: Apache-2.0
// Parts of images for the tests of rows and sums: each part is given with the rows that its windows
// see, and sums and gradients of all parts add up to those of the images.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "src/core/images.h"
#include "src/window/test_cases.h"

namespace similis::window_test {

/// The sums of a call and its gradients, in memory of the whole images.
struct Sums {
  std::vector<double> value;
  test::Array x_gradient, y_gradient;
};

inline TensorView rows_of(const TensorView& view, std::int64_t first, std::int64_t end) {
  TensorView part = view;
  const int axis = view.shape.rank() > 3 ? 2 : 0;  // masks have no N and C
  part.offset += first * view.strides[axis];
  part.shape[axis] = end - first;
  return part;
}

/// Adds the sums and gradients of the rows [first, end) to `into`.
template <class Operation, class Request, class Options>
void add_part(const Operation& operation, const Pair& images, std::int64_t first, std::int64_t end,
    const Request& request, const Options& options, std::int64_t radius, Sums& into) {
  const std::int64_t extent = images.x.shape[2];
  const std::int64_t from = std::max<std::int64_t>(first - radius, 0);
  const std::int64_t to = std::min(end + radius, extent);
  Options of_part = options;
  of_part.rows = {first - from, end - from};
  if (!of_part.mask.empty()) of_part.mask = rows_of(of_part.mask, from, to);
  if (!of_part.valid_mask.empty()) of_part.valid_mask = rows_of(of_part.valid_mask, from, to);
  const TensorView x = rows_of(images.x, from, to), y = rows_of(images.y, from, to);
  const Tensor value = allocate(request.upstream.shape, DType::f64);
  test::Array x_gradient, y_gradient;
  Request to_fill = request;
  to_fill.value = value;
  if (is_floating_point(x.dtype)) {
    x_gradient = test::filled(x.shape, x.dtype, test::Layout::dense, test::kUntouched);
    y_gradient = test::filled(x.shape, x.dtype, test::Layout::permuted, test::kUntouched);
    to_fill.x_gradient = x_gradient;
    to_fill.y_gradient = y_gradient;
  }
  run_chosen(operation, x, y, to_fill, of_part, {});
  const std::vector<double> sums = to_doubles(value);
  into.value.resize(sums.size());
  for (std::size_t i = 0; i < sums.size(); ++i) into.value[i] += sums[i];
  if (to_fill.x_gradient.empty()) return;
  EXPECT_TRUE(test::only_elements_written(x_gradient) && test::only_elements_written(y_gradient));
  for (auto [gradient, whole] :
      {std::pair{&x_gradient, &into.x_gradient}, std::pair{&y_gradient, &into.y_gradient}}) {
    const TensorView there = rows_of(*whole, from, to);
    const std::vector<double> numbers = to_doubles(*gradient);
    for (std::int64_t i = 0; i < there.shape.count(); ++i) {
      static_cast<double*>(there.data())[test::offset_of(there, i)] +=
          numbers[static_cast<std::size_t>(i)];
    }
  }
}

/// The sums of all parts, which begin at these rows. A part without a centre has none.
template <class Operation, class Request, class Options>
Sums sums_of_parts(const Operation& operation, const Pair& images,
    const std::vector<std::int64_t>& begins, const Request& request, const Options& options) {
  const Extents& shape = images.x.shape;
  const std::int64_t extent = shape[2];
  const int window = shape.rank() == 5 ? options.window_size.z() : options.window_size.y();
  const std::int64_t radius = window / 2;
  const std::int64_t cut = options.padding == Padding::valid ? radius : 0;
  Sums result;
  result.value.resize(static_cast<std::size_t>(request.upstream.shape.count()));
  for (test::Array* gradient : {&result.x_gradient, &result.y_gradient}) {
    *gradient = test::filled(shape, DType::f64, test::Layout::dense, 0);
  }
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const std::int64_t end = i + 1 < begins.size() ? begins[i + 1] : extent;
    if (std::max(begins[i], cut) >= std::min(end, extent - cut)) continue;
    add_part(operation, images, begins[i], end, request, options, radius, result);
  }
  return result;
}

/// The sum of weights in each plane: of the map's centres, or of all pixels.
template <class Options>
double weights_of(const Pair& images, const Options& options, bool of_pixels = false) {
  double total = 0;
  const Extents& shape = images.x.shape;
  const int rank = shape.rank();
  const bool is_cut = options.padding == Padding::valid && !of_pixels;
  const std::vector<double> mask =
      options.mask.empty() ? std::vector<double>() : to_doubles(options.mask);
  const PerAxis<int>& window = options.window_size;
  const std::int64_t cuts[] = {is_cut && rank == 5 ? window.z() / 2 : 0,
      is_cut ? window.y() / 2 : 0, is_cut ? window.x() / 2 : 0};
  const std::int64_t depth = rank == 5 ? shape[2] : 1, height = shape[rank - 2],
                     width = shape[rank - 1];
  for (std::int64_t z = cuts[0]; z < depth - cuts[0]; ++z) {
    for (std::int64_t y = cuts[1]; y < height - cuts[1]; ++y) {
      for (std::int64_t x = cuts[2]; x < width - cuts[2]; ++x) {
        const auto at = static_cast<std::size_t>((z * height + y) * width + x);
        total += mask.empty() ? 1 : mask[at];
      }
    }
  }
  return total;
}

}  // namespace similis::window_test
