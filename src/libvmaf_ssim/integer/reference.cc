// SPDX-License-Identifier: Apache-2.0
// Integer SSIM as it is defined: integer sums across, then down, and one running sum in raster
// order.
#include <algorithm>
#include <cmath>

#include "src/core/tensor/doubles.h"
#include "src/libvmaf_ssim/reference.h"

namespace similis::libvmaf_ssim_internal {
namespace {

using Integer = std::int64_t;

constexpr Integer kKernel[] = {2, 9, 28, 55, 68, 55, 28, 9, 2};

struct Sums {
  Integer x = 0, y = 0, xx = 0, yy = 0, xy = 0, w = 0;

  void add(Integer tap, const Sums& s) {
    x += tap * s.x, y += tap * s.y, xx += tap * s.xx, yy += tap * s.yy, xy += tap * s.xy;
    w += tap * s.w;
  }
};

// Along one axis, without the part outside.
template <class At> Sums filtered(Integer position, Integer extent, const At& at) {
  Sums sums;
  for (Integer k = std::max<Integer>(0, 4 - position); k < 9 && position + k - 4 < extent; ++k) {
    sums.add(kKernel[k], at(position + k - 4));
  }
  return sums;
}

double term(const Sums& s, int bit_depth) {
  const double peak = static_cast<double>((1 << bit_depth) - 1);
  const auto w = static_cast<double>(s.w), xx = static_cast<double>(s.xx),
             yy = static_cast<double>(s.yy), xy = static_cast<double>(s.xy);
  const auto x = static_cast<double>(s.x), y = static_cast<double>(s.y);
  const double c1 = peak * peak * (0.01 * 0.01) * w * w;
  const double c2 = peak * peak * (0.03 * 0.03) * w * w;
  const double mean_xx = x * x, mean_xy = x * y, mean_yy = y * y;
  return w * (2 * mean_xy + c1) * (c2 + 2 * (xy * w - mean_xy)) /
         ((mean_xx + mean_yy + c1) * (xx * w - mean_xx + yy * w - mean_yy + c2));
}

double score(const double* x, const double* y, Integer height, Integer width, int bit_depth) {
  std::vector<Sums> across(static_cast<std::size_t>(height * width));
  for (Integer i = 0; i < height * width; ++i) {
    const Integer row_start = i - i % width;
    across[static_cast<std::size_t>(i)] = filtered(i % width, width, [&](Integer column) {
      const auto a = static_cast<Integer>(x[row_start + column]);
      const auto b = static_cast<Integer>(y[row_start + column]);
      return Sums{.x = a, .y = b, .xx = a * a, .yy = b * b, .xy = a * b, .w = 1};
    });
  }
  double sum = 0, weight = 0;
  for (Integer row = 0; row < height; ++row) {
    for (Integer column = 0; column < width; ++column) {
      const Sums sums = filtered(row, height,
          [&](Integer at) { return across[static_cast<std::size_t>(at * width + column)]; });
      sum += term(sums, bit_depth);
      weight += static_cast<double>(sums.w);
    }
  }
  return sum / weight;
}

}  // namespace

std::vector<double> reference_integer_ssim(const PlanePairs& planes) {
  const std::vector<double> x = to_doubles(planes.x), y = to_doubles(planes.y);
  std::vector<double> scores;
  for (Integer i = 0; i < planes.count(); ++i) {
    const Integer start = i * planes.height() * planes.width();
    scores.push_back(score(
        x.data() + start, y.data() + start, planes.height(), planes.width(), planes.bit_depth));
  }
  return scores;
}

}  // namespace similis::libvmaf_ssim_internal
