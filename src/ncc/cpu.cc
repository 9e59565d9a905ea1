// SPDX-License-Identifier: Apache-2.0
// NCC on the CPU. Slabs of a plane are summed each by itself and then in their order, so that
// results do not depend on the number of threads; gradients walk the slabs once more.
#include <algorithm>
#include <type_traits>
#include <vector>

#include "src/core/parallel.h"
#include "src/core/tensor/dispatch.h"
#include "src/ncc/ncc.h"

namespace similis::ncc_internal {
namespace {

constexpr std::int64_t kRowsOfSlab = 256;

// Rows of all of a plane's depth.
struct Slab {
  std::int64_t plane, first_row, last_row;
};

// One plane of a 5-D array.
template <class T> struct Plane {
  T* first = nullptr;
  const Extents* strides = nullptr;

  Plane(const TensorView& view, std::int64_t plane) {
    if (view.empty()) return;
    const std::int64_t channels = view.shape[1];
    strides = &view.strides;
    first = static_cast<T*>(view.data()) + plane / channels * view.strides[0] +
            plane % channels * view.strides[1];
  }
  T* at(std::int64_t z, std::int64_t y, std::int64_t x) const {
    return first + z * (*strides)[2] + y * (*strides)[3] + x * (*strides)[4];
  }
};

// x or y of one plane, less the pixel in its middle: sums of large values keep their digits.
template <class T> struct Image : Plane<T> {
  double shift = 0;

  Image(const TensorView& view, std::int64_t plane) : Plane<T>(view, plane) {
    const Extents& shape = view.shape;
    const double middle = similis::load(*this->at(shape[2] / 2, shape[3] / 2, shape[4] / 2));
    shift = std::isfinite(middle) ? middle : 0;
  }
  double load(const T* row, std::int64_t pixel) const {
    return similis::load(row[pixel * (*this->strides)[4]]) - shift;
  }
};

template <class T> Sums sums_of(const PixelPass& pass, const Slab& slab) {
  const Extents& shape = pass.x.shape;
  const Image<T> x(pass.x, slab.plane), y(pass.y, slab.plane);
  Sums sums;
  for (std::int64_t row = slab.first_row; row < slab.last_row; ++row) {
    const T* const of_x = x.at(row / shape[3], row % shape[3], 0);
    const T* const of_y = y.at(row / shape[3], row % shape[3], 0);
    Sums of_row;
    for (std::int64_t w = 0; w < shape[4]; ++w) of_row.add_pixel(x.load(of_x, w), y.load(of_y, w));
    sums.add(of_row);
  }
  return sums;
}

template <class T>
void write_gradients(
    const PixelPass& pass, const Slab& slab, const Correlation& plane, double scale) {
  const Extents& shape = pass.x.shape;
  const Image<T> x(pass.x, slab.plane), y(pass.y, slab.plane);
  const Plane<T> by_x(pass.x_gradient, slab.plane), by_y(pass.y_gradient, slab.plane);
  for (std::int64_t row = slab.first_row; row < slab.last_row; ++row) {
    const std::int64_t z = row / shape[3], h = row % shape[3];
    const T *const of_x = x.at(z, h, 0), *const of_y = y.at(z, h, 0);
    for (std::int64_t w = 0; w < shape[4]; ++w) {
      const double a = x.load(of_x, w), b = y.load(of_y, w);
      if (by_x.first) store(scale * plane.slope_x(a, b), by_x.at(z, h, w));
      if (by_y.first) store(scale * plane.slope_y(a, b), by_y.at(z, h, w));
    }
  }
}

template <class Function>
void for_each_slab(const PixelPass& pass, std::int64_t slabs, const Execution& exec, Function f) {
  const std::int64_t rows = pass.x.shape[2] * pass.x.shape[3];
  parallel_for(exec, planes(pass) * slabs, [&](std::int64_t i) {
    const std::int64_t first = i % slabs * kRowsOfSlab;
    const Slab slab{i / slabs, first, std::min(rows, first + kRowsOfSlab)};
    visit_dtype(
        pass.x.dtype, [&]<class T>(std::type_identity<T>) { f.template operator()<T>(i, slab); });
  });
}

}  // namespace

void ncc_cpu(const PixelPass& pass, const Execution& exec) {
  const Extents& shape = pass.x.shape;
  const std::int64_t rows = shape[2] * shape[3], slabs = (rows + kRowsOfSlab - 1) / kRowsOfSlab;
  std::vector<Sums> sums(static_cast<std::size_t>(planes(pass) * slabs));
  for_each_slab(pass, slabs, exec, [&]<class T>(std::int64_t i, const Slab& slab) {
    sums[static_cast<std::size_t>(i)] = sums_of<T>(pass, slab);
  });
  std::vector<Correlation> correlations;
  for (std::int64_t plane = 0; plane < planes(pass); ++plane) {
    Sums total;
    for (std::int64_t i = 0; i < slabs; ++i) {
      total.add(sums[static_cast<std::size_t>(plane * slabs + i)]);
    }
    correlations.push_back(correlation(total, static_cast<double>(rows * shape[4])));
  }
  const std::int64_t each = planes_each(pass);
  for (std::int64_t result = 0; !pass.value.empty() && result < pass.result_shape.count();
       ++result) {
    double sum = 0;
    for (std::int64_t i = 0; i < each; ++i) {
      sum += correlations[static_cast<std::size_t>(result * each + i)].value;
    }
    store_result(pass.value, result, sum / pass.divisor);
  }
  if (pass.x_gradient.empty() && pass.y_gradient.empty()) return;
  for_each_slab(pass, slabs, exec, [&]<class T>(std::int64_t, const Slab& slab) {
    if constexpr (!std::is_integral_v<T>) {
      write_gradients<T>(pass, slab, correlations[static_cast<std::size_t>(slab.plane)],
          gradient_scale(pass, slab.plane / each));
    }
  });
}

}  // namespace similis::ncc_internal
