// SPDX-License-Identifier: Apache-2.0
// LNCC window by window: weighted means, then variances and covariance of what is left (two passes,
// so that they stay precise however far intensities are from 0), the quotient, and by the chain
// rule what each pixel of the window has to do with it. Shares nothing with formula.h and the
// backends.
#include "src/lncc/reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "src/core/tensor/doubles.h"

namespace similis::lncc_internal {
namespace {

// Weights along one axis of the window at one position, not normalised: those inside the image, and
// what those outside add up to.
struct AxisWindow {
  std::int64_t centre;
  std::int64_t first;  // pixel of weights[0]
  std::vector<double> weights;
  double inside = 0, outside = 0;
};

std::vector<AxisWindow> axis_windows(
    std::int64_t extent, int size, double sigma, const LnccOptions& options) {
  const std::int64_t radius = size / 2, rim = options.padding == Padding::valid ? radius : 0;
  std::vector<AxisWindow> windows;
  for (std::int64_t centre = rim; centre < extent - rim; ++centre) {
    AxisWindow window{
        .centre = centre, .first = std::max<std::int64_t>(0, centre - radius), .weights = {}};
    for (std::int64_t pixel = centre - radius; pixel <= centre + radius; ++pixel) {
      const auto distance = static_cast<double>(pixel - centre);
      const double weight = options.window == WindowShape::box
                                ? 1
                                : std::exp(-distance * distance / (2 * sigma * sigma));
      const bool is_inside = pixel >= 0 && pixel < extent;
      (is_inside ? window.inside : window.outside) += weight;
      if (is_inside) window.weights.push_back(weight);
    }
    if (options.padding == Padding::renormalize) window.outside = 0;
    windows.push_back(window);
  }
  return windows;
}

struct Seen {
  std::size_t pixel;
  double weight;
};

struct Moments {
  double mean_x = 0, mean_y = 0, a = 0, b = 0, c = 0;  // a, b, c times the number of taps
};

struct Correlation {
  double value = 0, by_a = 0, by_b = 0, by_c = 0;
};

class Calculation {
 public:
  Calculation(const TensorView& x, const TensorView& y, const LnccRequest& request,
      const LnccOptions& options)
      : options_(options),
        weight_(request.weight),
        shape_(x.shape),
        x_(to_doubles(x)),
        y_(to_doubles(y)),
        mask_(broadcast_to_doubles(options.mask, x.shape)),
        valid_mask_(broadcast_to_doubles(options.valid_mask, x.shape)) {
    if (!request.upstream.empty()) upstream_ = to_doubles(request.upstream);
    const int rank = shape_.rank();
    const bool has_depth = rank == 5;
    const PerAxis<int>& size = options.window_size;
    const PerAxis<double>& sigma = options.sigma;
    extents_ = {has_depth ? shape_[2] : 1, shape_[rank - 2], shape_[rank - 1]};
    const std::array<int, 3> sizes = {has_depth ? size.z() : 1, size.y(), size.x()};
    windows_ = {axis_windows(extents_[0], sizes[0], has_depth ? sigma.z() : 1, options),
        axis_windows(extents_[1], sizes[1], sigma.y(), options),
        axis_windows(extents_[2], sizes[2], sigma.x(), options)};
    taps_ = static_cast<double>(sizes[0]) * sizes[1] * sizes[2];
    nr_ = options.smooth_nr * taps_;
    dr_ = options.smooth_dr * taps_;
    result_.x_gradient.assign(x_.size(), 0);
    result_.y_gradient.assign(x_.size(), 0);
  }

  Reference run() {
    set_shape();
    std::vector<double> totals(result_.value.size(), 0);
    for_each_window([&](std::int64_t plane, std::int64_t index, const AxisWindow& z,
                        const AxisWindow& y, const AxisWindow& x) {
      totals[group(plane, index)] += pixel_weight(pixel(plane, z.centre, y.centre, x.centre));
    });
    const bool is_mean =
        options_.reduction != Reduction::none && options_.reduction != Reduction::sum;
    constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
    for (std::size_t i = 0; i < totals.size(); ++i) {
      if (is_mean && totals[i] == 0 && weight_ > 0) result_.value[i] = kNaN;
    }
    for_each_window([&](std::int64_t plane, std::int64_t index, const AxisWindow& z,
                        const AxisWindow& y, const AxisWindow& x) {
      const std::size_t result = group(plane, index);
      const std::size_t centre = pixel(plane, z.centre, y.centre, x.centre);
      const bool exists = valid_mask_.empty() || valid_mask_[centre] > 0;
      if (options_.reduction == Reduction::none && !exists) result_.value[result] = kNaN;
      const double own_weight = pixel_weight(centre);
      if (own_weight == 0) return;
      const double share = weight_ * own_weight / (is_mean ? totals[result] : 1);
      const Window window = window_at(plane, z, y, x);
      const Moments m = moments(window);
      const Correlation v = correlation(m);
      result_.value[result] += share * v.value;
      const double slope = share * (upstream_.empty() ? 1 : upstream_[result]);
      if (options_.gradient == LnccGradient::ants) {
        add_centre(centre, m, slope);
      } else {
        spread(window, m, v, slope * taps_);
      }
    });
    return result_;
  }

 private:
  struct Window {
    std::vector<Seen> seen;
    double outside = 0;  // weight of the zeros that it sees
  };

  void set_shape() {
    const int rank = shape_.rank();
    Extents map = shape_;
    for (int axis = 2; axis < rank; ++axis) {
      map[axis] =
          static_cast<std::int64_t>(windows_[static_cast<std::size_t>(axis + 3 - rank)].size());
    }
    if (options_.reduction == Reduction::none) {
      result_.shape = map;
    } else if (options_.reduction == Reduction::per_image) {
      result_.shape = {shape_[0]};
    } else if (options_.reduction == Reduction::per_channel) {
      result_.shape = {shape_[0], shape_[1]};
    }
    result_.value.assign(static_cast<std::size_t>(result_.shape.count()), 0);
  }

  // Calls function(plane, index, z, y, x) for each position of the map, in its order.
  template <class Function> void for_each_window(const Function& function) const {
    std::int64_t index = 0;
    for (std::int64_t plane = 0; plane < shape_[0] * shape_[1]; ++plane) {
      for (const AxisWindow& z : windows_[0]) {
        for (const AxisWindow& y : windows_[1]) {
          for (const AxisWindow& x : windows_[2]) function(plane, index++, z, y, x);
        }
      }
    }
  }

  std::size_t group(std::int64_t plane, std::int64_t index) const {
    switch (options_.reduction) {
      case Reduction::none: return static_cast<std::size_t>(index);
      case Reduction::per_image: return static_cast<std::size_t>(plane / shape_[1]);
      case Reduction::per_channel: return static_cast<std::size_t>(plane);
      default: return 0;
    }
  }

  std::size_t pixel(std::int64_t plane, std::int64_t z, std::int64_t y, std::int64_t x) const {
    return static_cast<std::size_t>(
        ((plane * extents_[0] + z) * extents_[1] + y) * extents_[2] + x);
  }

  // The weight of a pixel in the reduction.
  double pixel_weight(std::size_t pixel) const {
    const double valid = valid_mask_.empty() ? 1 : valid_mask_[pixel];
    if (!(valid > 0)) return 0;
    if (!mask_.empty()) return mask_[pixel];
    return options_.reduction == Reduction::none ? 1 : valid;
  }

  // The pixels that a window sees. Their weights and that of the zeros outside sum to 1.
  Window window_at(
      std::int64_t plane, const AxisWindow& z, const AxisWindow& y, const AxisWindow& x) const {
    Window window;
    double sum = 0;
    for (std::size_t i = 0; i < z.weights.size(); ++i) {
      for (std::size_t j = 0; j < y.weights.size(); ++j) {
        for (std::size_t k = 0; k < x.weights.size(); ++k) {
          const std::size_t at = pixel(plane, z.first + static_cast<std::int64_t>(i),
              y.first + static_cast<std::int64_t>(j), x.first + static_cast<std::int64_t>(k));
          const double valid = valid_mask_.empty() ? 1 : valid_mask_[at];
          if (!(valid > 0)) continue;
          window.seen.push_back({at, z.weights[i] * y.weights[j] * x.weights[k] * valid});
          sum += window.seen.back().weight;
        }
      }
    }
    window.outside = (z.inside + z.outside) * (y.inside + y.outside) * (x.inside + x.outside) -
                     z.inside * y.inside * x.inside;
    sum += window.outside;
    for (Seen& seen : window.seen) seen.weight /= sum;
    window.outside /= sum;
    return window;
  }

  Moments moments(const Window& window) const {
    Moments m;
    for (const Seen& seen : window.seen) {
      m.mean_x += seen.weight * x_[seen.pixel];
      m.mean_y += seen.weight * y_[seen.pixel];
    }
    const auto add = [&](double weight, double x, double y) {
      m.a += taps_ * weight * (x - m.mean_x) * (y - m.mean_y);
      m.b += taps_ * weight * (x - m.mean_x) * (x - m.mean_x);
      m.c += taps_ * weight * (y - m.mean_y) * (y - m.mean_y);
    };
    add(window.outside, 0, 0);
    for (const Seen& seen : window.seen) add(seen.weight, x_[seen.pixel], y_[seen.pixel]);
    return m;
  }

  Correlation correlation(const Moments& m) const {
    const double b = std::max(m.b, dr_), c = std::max(m.c, dr_);
    Correlation v;
    if (options_.is_signed) {
      v = {.value = m.a / std::sqrt(b) / std::sqrt(c), .by_a = 1 / std::sqrt(b) / std::sqrt(c)};
      v.by_b = -v.value / (2 * b);
      v.by_c = -v.value / (2 * c);
    } else {
      const double denominator = b * c + dr_;
      v = {.value = (m.a * m.a + nr_) / denominator, .by_a = 2 * m.a / denominator};
      v.by_b = -v.value / denominator * c;
      v.by_c = -v.value / denominator * b;
    }
    if (!(m.b > dr_)) v.by_b = 0;
    if (!(m.c > dr_)) v.by_c = 0;
    if (v.value > 1 || v.value < -1) v = {.value = v.value > 1 ? 1.0 : -1.0};
    return v;
  }

  // Adds a window's part to the gradients of the pixels that it sees.
  void spread(const Window& window, const Moments& m, const Correlation& v, double slope) {
    for (const Seen& seen : window.seen) {
      const double x = x_[seen.pixel] - m.mean_x, y = y_[seen.pixel] - m.mean_y;
      const double weight = slope * seen.weight;
      result_.x_gradient[seen.pixel] += weight * (v.by_a * y + 2 * v.by_b * x);
      result_.y_gradient[seen.pixel] += weight * (v.by_a * x + 2 * v.by_c * y);
    }
  }

  // ANTs' gradient: D·((y - μy) - a/(b + dr)·(x - μx)), D = 2·slope·a / (B·C + dr).
  void add_centre(std::size_t centre, const Moments& m, double slope) {
    const double d = 2 * slope * m.a / (std::max(m.b, dr_) * std::max(m.c, dr_) + dr_);
    const double x = x_[centre] - m.mean_x, y = y_[centre] - m.mean_y;
    result_.x_gradient[centre] += d * (y - m.a / (m.b + dr_) * x);
    result_.y_gradient[centre] += d * (x - m.a / (m.c + dr_) * y);
  }

  const LnccOptions& options_;
  const double weight_;
  const Extents shape_;
  std::vector<double> x_, y_, mask_, valid_mask_, upstream_;
  std::array<std::int64_t, 3> extents_;
  std::array<std::vector<AxisWindow>, 3> windows_;  // along z, y, x
  double taps_, nr_, dr_;
  Reference result_;
};

}  // namespace

Reference reference_lncc(const TensorView& x, const TensorView& y, const LnccRequest& request,
    const LnccOptions& options) {
  return Calculation(x, y, request, options).run();
}

}  // namespace similis::lncc_internal
