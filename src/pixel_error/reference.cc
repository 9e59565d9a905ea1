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
    const PixelErrorOptions& options, const TensorView& upstream) {
  const Reduction reduction = options.reduction;
  const std::vector<double> weights =
      options.mask.empty() ? std::vector<double>{} : broadcast_to_doubles(options.mask, x.shape);
  const std::vector<double> xs = to_doubles(x), ys = to_doubles(y);
  const std::vector<double> upstreams =
      upstream.empty() ? std::vector<double>{} : to_doubles(upstream);
  Reference result{.shape = value_shape(x.shape, reduction)};
  const auto results = static_cast<std::size_t>(result.shape.count());
  const auto weight_of = [&](std::size_t pixel) { return weights.empty() ? 1 : weights[pixel]; };
  std::vector<long double> divisors(results, reduction == Reduction::sum ? 1 : 0);
  for (std::size_t i = 0; reduction != Reduction::sum && i < xs.size(); ++i) {
    divisors[result_of(i, x.shape, reduction)] += static_cast<long double>(weight_of(i));
  }
  std::vector<long double> sums(results, 0);  // so that the order of adding does not matter
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const std::size_t r = result_of(i, x.shape, reduction);
    if (weight_of(i) == 0) {
      result.x_gradient.push_back(0);
    } else {
      const double d = xs[i] - ys[i], sign = d > 0 ? 1 : d < 0 ? -1 : 0;
      const auto share = static_cast<double>(weight_of(i) / divisors[r]);
      sums[r] += weight_of(i) * (error == Error::squared ? d * d : std::abs(d));
      result.x_gradient.push_back((error == Error::squared ? 2 * d : sign) *
                                  (upstreams.empty() ? 1 : upstreams[r]) * share);
    }
    result.y_gradient.push_back(-result.x_gradient.back());
  }
  for (std::size_t r = 0; r < results; ++r) {
    result.value.push_back(static_cast<double>(sums[r] / divisors[r]));
  }
  return result;
}

}  // namespace similis::pixel_error_internal
