// SPDX-License-Identifier: Apache-2.0
// SSIM as the paper writes it, window by window: weighted means, variances and covariance (in two
// passes, so that they stay precise in flat areas), the quotient, and by the chain rule what each
// pixel of the window has to do with it. Shares nothing with formula.h and the backends.
#include "src/ssim/reference.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "src/core/tensor/doubles.h"

namespace similis::ssim_internal {
namespace {

// A pixel that a window sees, along one axis or in the image, and its weight.
struct Seen {
  std::int64_t pixel;
  double weight;
};

// The pixels that the window at one position sees along one axis.
struct AxisWindow {
  std::int64_t centre;
  std::vector<Seen> seen;
  double weight = 1;  // sum of the weights of seen; below 1 where it sees zeros outside
};

// The pixel seen at this position, which may be outside [0, extent); -1 if there is none.
std::int64_t padded(std::int64_t position, std::int64_t extent, Padding padding) {
  if (position >= 0 && position < extent) return position;
  if (padding == Padding::replicate) return position < 0 ? 0 : extent - 1;
  if (padding == Padding::reflect) return position < 0 ? -position : 2 * (extent - 1) - position;
  return -1;
}

AxisWindow axis_window(
    std::int64_t centre, std::int64_t extent, int size, double sigma, const SsimOptions& options) {
  const Padding padding = options.padding;
  AxisWindow window{.centre = centre};
  double all = 0, inside = 0;
  for (int distance = -size / 2; distance <= size / 2; ++distance) {
    const double weight = options.window == WindowShape::box
                              ? 1
                              : std::exp(-distance * distance / (2 * sigma * sigma));
    all += weight;
    const std::int64_t pixel = padded(centre + distance, extent, padding);
    if (pixel < 0) continue;
    inside += weight;
    window.seen.push_back({pixel, weight});
  }
  if (padding == Padding::same) window.weight = inside / all;
  for (Seen& seen : window.seen) seen.weight *= window.weight / inside;
  return window;
}

std::vector<AxisWindow> axis_windows(
    std::int64_t extent, int size, double sigma, const SsimOptions& options) {
  const std::int64_t rim = options.padding == Padding::valid ? size / 2 : 0;
  std::vector<AxisWindow> windows;
  for (std::int64_t centre = rim; centre < extent - rim; ++centre) {
    windows.push_back(axis_window(centre, extent, size, sigma, options));
  }
  return windows;
}

// The images, with everything that does not depend on the position. 2-D images have depth 1.
struct Images {
  Images(const TensorView& x_view, const TensorView& y_view, const SsimOptions& options);

  std::int64_t pixel_count() const { return static_cast<std::int64_t>(x.size()); }
  double valid(std::int64_t pixel) const {
    return valid_mask.empty() ? 1 : valid_mask[static_cast<std::size_t>(pixel)];
  }

  std::int64_t images, channels, depth, height, width;
  std::vector<double> x, y, mask, valid_mask;
  std::array<std::vector<AxisWindow>, 3> windows;  // along z, y, x
  double c1, c2;
  double covariance_factor;  // of variances and covariance
};

Images::Images(const TensorView& x_view, const TensorView& y_view, const SsimOptions& options)
    : x(to_doubles(x_view)),
      y(to_doubles(y_view)),
      mask(broadcast_to_doubles(options.mask, x_view.shape)),
      valid_mask(broadcast_to_doubles(options.valid_mask, x_view.shape)) {
  const Extents& shape = x_view.shape;
  const int rank = shape.rank();
  images = shape[0];
  channels = shape[1];
  depth = rank == 5 ? shape[2] : 1;
  height = shape[rank - 2];
  width = shape[rank - 1];
  const PerAxis<int>& size = options.window_size;
  const PerAxis<double>& sigma = options.sigma;
  windows = {axis_windows(depth, rank == 5 ? size.z() : 1, rank == 5 ? sigma.z() : 1, options),
      axis_windows(height, size.y(), sigma.y(), options),
      axis_windows(width, size.x(), sigma.x(), options)};
  const double pixels =
      static_cast<double>(rank == 5 ? size.z() : 1) * size.y() * static_cast<double>(size.x());
  covariance_factor = options.sample_covariance ? pixels / (pixels - 1) : 1;
  const double range = options.data_range.value_or(x_view.dtype == DType::u8 ? 255 : 1);
  c1 = (options.k1 * range) * (options.k1 * range);
  c2 = (options.k2 * range) * (options.k2 * range);
}

// The pixels that a window sees in the image. Their weights and that of the zeros outside sum to 1.
struct Neighbourhood {
  std::vector<Seen> seen;
  double outside = 0;
};

Neighbourhood window_at(const Images& images, std::int64_t plane, const AxisWindow& z,
    const AxisWindow& y, const AxisWindow& x) {
  Neighbourhood window;
  window.seen.reserve(z.seen.size() * y.seen.size() * x.seen.size());
  double sum = 0;
  for (const Seen& in_z : z.seen) {
    for (const Seen& in_y : y.seen) {
      const std::int64_t row =
          ((plane * images.depth + in_z.pixel) * images.height + in_y.pixel) * images.width;
      for (const Seen& in_x : x.seen) {
        const std::int64_t pixel = row + in_x.pixel;
        if (!(images.valid(pixel) > 0)) continue;
        const double weight = in_z.weight * in_y.weight * in_x.weight * images.valid(pixel);
        window.seen.push_back({pixel, weight});
        sum += weight;
      }
    }
  }
  window.outside = 1 - z.weight * y.weight * x.weight;
  if (images.valid_mask.empty()) return window;
  sum += window.outside;
  for (Seen& seen : window.seen) seen.weight /= sum;
  window.outside /= sum;
  return window;
}

struct Moments {
  double mean_x = 0, mean_y = 0, variance_x = 0, variance_y = 0, covariance = 0;
};

Moments moments(const Images& images, const Neighbourhood& window) {
  Moments m;
  for (const auto& [pixel, weight] : window.seen) {
    m.mean_x += weight * images.x[static_cast<std::size_t>(pixel)];
    m.mean_y += weight * images.y[static_cast<std::size_t>(pixel)];
  }
  const auto add = [&](double weight, double x, double y) {
    m.variance_x += weight * (x - m.mean_x) * (x - m.mean_x);
    m.variance_y += weight * (y - m.mean_y) * (y - m.mean_y);
    m.covariance += weight * (x - m.mean_x) * (y - m.mean_y);
  };
  add(window.outside, 0, 0);
  for (const auto& [pixel, weight] : window.seen) {
    add(weight, images.x[static_cast<std::size_t>(pixel)],
        images.y[static_cast<std::size_t>(pixel)]);
  }
  m.variance_x *= images.covariance_factor;
  m.variance_y *= images.covariance_factor;
  m.covariance *= images.covariance_factor;
  return m;
}

// SSIM, or its contrast term, of a window.
struct Similarity {
  double loss;  // 1 - SSIM
  Moments derivative;
};

// A quotient of means or of variances of two images: 1 where both are black or flat and k1 or k2
// is 0. Long, so that 1 - SSIM keeps its precision where SSIM is nearly 1.
long double likeness(long double numerator, long double denominator) {
  return denominator == 0 ? 1 : numerator / denominator;
}

double slope(long double numerator, long double denominator) {
  return denominator == 0 ? 0 : static_cast<double>(numerator / denominator);
}

Similarity similarity(const Moments& m, double c1, double c2, Term term) {
  const long double mean_x = m.mean_x, mean_y = m.mean_y;
  const long double squares = mean_x * mean_x + mean_y * mean_y + c1;
  const long double variances = m.variance_x + static_cast<long double>(m.variance_y) + c2;
  const bool contrast_only = term == Term::contrast;
  const long double l = contrast_only ? 1 : likeness(2 * mean_x * mean_y + c1, squares);
  const long double cs = likeness(2 * static_cast<long double>(m.covariance) + c2, variances);
  const double by_variance = slope(-l * cs, variances);
  return {.loss = static_cast<double>(1 - l * cs),
      .derivative = {.mean_x = contrast_only ? 0 : slope(2 * cs * (mean_y - l * mean_x), squares),
          .mean_y = contrast_only ? 0 : slope(2 * cs * (mean_x - l * mean_y), squares),
          .variance_x = by_variance,
          .variance_y = by_variance,
          .covariance = slope(2 * l, variances)}};
}

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A number of the map, or of |x - y|: which value it is part of and with which weight.
struct Share {
  std::size_t result;
  double weight;
};

// Reduces numbers of pixels to values.
class Reduce {
 public:
  // `pixels` are those that the numbers belong to.
  Reduce(const Images& images, Reduction reduction, const std::vector<std::int64_t>& pixels)
      : images_(images), reduction_(reduction) {
    const std::size_t results = reduction == Reduction::none ? pixels.size() : result_count();
    totals_.assign(results, 0);
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      const std::size_t result = reduction == Reduction::none ? i : group(pixels[i]);
      shares_.push_back({result, weight(pixels[i])});
      totals_[result] += shares_.back().weight;
    }
    if (reduction == Reduction::sum || reduction == Reduction::none) return;
    for (Share& share : shares_) {
      if (totals_[share.result] > 0) share.weight /= totals_[share.result];
    }
    for (double& total : totals_) total = total > 0 ? 1 : kNaN;
  }

  // One for each number.
  const std::vector<Share>& shares() const { return shares_; }
  // Each value if all numbers are 1; NaN for the mean of none.
  const std::vector<double>& totals() const { return totals_; }

 private:
  std::size_t result_count() const {
    if (reduction_ == Reduction::per_image) return static_cast<std::size_t>(images_.images);
    if (reduction_ != Reduction::per_channel) return 1;
    return static_cast<std::size_t>(images_.images * images_.channels);
  }

  std::size_t group(std::int64_t pixel) const {
    return static_cast<std::size_t>(pixel) * result_count() /
           static_cast<std::size_t>(images_.pixel_count());
  }

  double weight(std::int64_t pixel) const {
    const double mask = images_.mask.empty() ? 1 : images_.mask[static_cast<std::size_t>(pixel)];
    if (images_.valid_mask.empty() || reduction_ == Reduction::none) return mask;
    const double valid = images_.valid(pixel);
    if (!(valid > 0)) return 0;
    return images_.mask.empty() ? valid : mask;
  }

  const Images& images_;
  Reduction reduction_;
  std::vector<Share> shares_;
  std::vector<double> totals_;
};

class Calculation {
 public:
  Calculation(const TensorView& x, const TensorView& y, const SsimRequest& request,
      const SsimOptions& options, Term term)
      : images_(x, y, options), request_(request), options_(options), term_(term) {
    if (!request.upstream.empty()) upstream_ = to_doubles(request.upstream);
    result_.x_gradient.assign(images_.x.size(), 0);
    result_.y_gradient.assign(images_.x.size(), 0);
    result_.shape = value_shape(x.shape);
  }

  Reference run() {
    add_similarity();
    if (request_.l1_weight != 0) add_l1();
    return result_;
  }

 private:
  Extents value_shape(const Extents& shape) const {
    switch (options_.reduction) {
      case Reduction::per_image: return {shape[0]};
      case Reduction::per_channel: return {shape[0], shape[1]};
      case Reduction::none: break;
      default: return {};
    }
    Extents map = shape;
    for (int axis = 2; axis < shape.rank(); ++axis) {
      const std::size_t in_space = static_cast<std::size_t>(axis + 5 - shape.rank() - 2);
      map[axis] = static_cast<std::int64_t>(images_.windows[in_space].size());
    }
    return map;
  }

  double upstream(std::size_t result) const { return upstream_.empty() ? 1 : upstream_[result]; }

  // Calls function(plane, z, y, x) for each position of the map, in its order.
  template <class Function> void for_each_window(const Function& function) const {
    for (std::int64_t plane = 0; plane < images_.images * images_.channels; ++plane) {
      for (const AxisWindow& z : images_.windows[0]) {
        for (const AxisWindow& y : images_.windows[1]) {
          for (const AxisWindow& x : images_.windows[2]) function(plane, z, y, x);
        }
      }
    }
  }

  std::vector<std::int64_t> centres() const {
    std::vector<std::int64_t> result;
    for_each_window([&](std::int64_t plane, const auto& z, const auto& y, const auto& x) {
      const std::int64_t row = (plane * images_.depth + z.centre) * images_.height + y.centre;
      result.push_back(row * images_.width + x.centre);
    });
    return result;
  }

  void add_similarity() {
    const std::vector<std::int64_t> pixels = centres();
    const Reduce reduce(images_, options_.reduction, pixels);
    std::vector<long double> losses(reduce.totals().size(), 0);
    std::size_t position = 0;
    for_each_window([&](std::int64_t plane, const auto& z, const auto& y, const auto& x) {
      const Share share = reduce.shares()[position];
      const bool exists = images_.valid(pixels[position]) > 0;
      ++position;
      if (!exists || share.weight == 0) return;
      const Neighbourhood window = window_at(images_, plane, z, y, x);
      const Moments m = moments(images_, window);
      const Similarity s = similarity(m, images_.c1, images_.c2, term_);
      losses[share.result] += static_cast<long double>(share.weight) * s.loss;
      spread(window, m, s.derivative, share.weight * upstream(share.result));
    });
    const bool is_loss = request_.form == SsimRequest::Form::loss;
    for (std::size_t i = 0; i < losses.size(); ++i) {
      const long double amount = is_loss ? losses[i] : reduce.totals()[i] - losses[i];
      const bool exists = options_.reduction != Reduction::none || images_.valid(pixels[i]) > 0;
      result_.value.push_back(exists ? static_cast<double>(request_.ssim_weight * amount) : kNaN);
    }
  }

  // Adds a window's part to the gradients of the pixels that it sees.
  void spread(
      const Neighbourhood& window, const Moments& m, const Moments& derivative, double weight) {
    const bool is_loss = request_.form == SsimRequest::Form::loss;
    const double factor = weight * (is_loss ? -request_.ssim_weight : request_.ssim_weight);
    const double by_variance = images_.covariance_factor * derivative.variance_x;
    const double by_covariance = images_.covariance_factor * derivative.covariance;
    for (const Seen& seen : window.seen) {
      const auto pixel = static_cast<std::size_t>(seen.pixel);
      const double x = images_.x[pixel] - m.mean_x, y = images_.y[pixel] - m.mean_y;
      result_.x_gradient[pixel] +=
          factor * seen.weight * (derivative.mean_x + 2 * x * by_variance + y * by_covariance);
      result_.y_gradient[pixel] +=
          factor * seen.weight * (derivative.mean_y + 2 * y * by_variance + x * by_covariance);
    }
  }

  void add_l1() {
    std::vector<std::int64_t> pixels;
    for (std::int64_t pixel = 0; pixel < images_.pixel_count(); ++pixel) pixels.push_back(pixel);
    const Reduce reduce(images_, options_.reduction, pixels);
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      const Share share = reduce.shares()[i];
      if (!(images_.valid(pixels[i]) > 0) || share.weight == 0) continue;
      const double difference = images_.x[i] - images_.y[i];
      const double sign = difference > 0 ? 1 : difference < 0 ? -1 : 0;
      const double weight = request_.l1_weight * share.weight;
      result_.value[share.result] += weight * std::abs(difference);
      result_.x_gradient[i] += upstream(share.result) * weight * sign;
      result_.y_gradient[i] -= upstream(share.result) * weight * sign;
    }
  }

  Images images_;
  const SsimRequest& request_;
  const SsimOptions& options_;
  Term term_;
  std::vector<double> upstream_;
  Reference result_;
};

}  // namespace

Reference reference_ssim(const TensorView& x, const TensorView& y, const SsimRequest& request,
    const SsimOptions& options, Term term) {
  return Calculation(x, y, request, options, term).run();
}

}  // namespace similis::ssim_internal
