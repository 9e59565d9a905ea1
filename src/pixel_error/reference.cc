// SPDX-License-Identifier: Apache-2.0
#include "src/pixel_error/reference.h"

#include <cmath>

#include "src/core/tensor/doubles.h"

namespace similis::pixel_error_internal {
namespace {

// The value to which a pixel belongs. Pixels are in row-major order, so those of one channel are
// neighbours.
std::size_t result_of(std::size_t pixel, const Extents& shape, Reduction reduction) {
  const auto pixels = static_cast<std::size_t>(shape.count());
  if (reduction == Reduction::per_channel) {
    return pixel / (pixels / static_cast<std::size_t>(shape[0] * shape[1]));
  }
  if (reduction == Reduction::per_image) {
    return pixel / (pixels / static_cast<std::size_t>(shape[0]));
  }
  return 0;
}

Extents value_shape(const Extents& shape, Reduction reduction) {
  switch (reduction) {
    case Reduction::per_channel: return {shape[0], shape[1]};
    case Reduction::per_image: return {shape[0]};
    default: return {};
  }
}

}  // namespace

Reference reference_pixel_error(Error error, const TensorView& x, const TensorView& y,
    Reduction reduction, const TensorView& upstream) {
  const std::vector<double> xs = to_doubles(x), ys = to_doubles(y);
  const std::vector<double> upstreams =
      upstream.empty() ? std::vector<double>{} : to_doubles(upstream);
  Reference result{.shape = value_shape(x.shape, reduction)};
  const auto results = static_cast<std::size_t>(result.shape.count());
  const double divisor = reduction == Reduction::sum ? 1 : static_cast<double>(xs.size() / results);
  std::vector<long double> sums(results, 0);  // so that the order of adding does not matter
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const double d = xs[i] - ys[i];
    const std::size_t r = result_of(i, x.shape, reduction);
    const double weight = (upstreams.empty() ? 1 : upstreams[r]) / divisor;
    const double sign = d > 0 ? 1 : d < 0 ? -1 : 0;
    sums[r] += error == Error::squared ? d * d : std::abs(d);
    result.x_gradient.push_back((error == Error::squared ? 2 * d : sign) * weight);
    result.y_gradient.push_back(-result.x_gradient.back());
  }
  for (const long double sum : sums) result.value.push_back(static_cast<double>(sum / divisor));
  return result;
}

}  // namespace similis::pixel_error_internal
