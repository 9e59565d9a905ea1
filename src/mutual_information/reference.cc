// SPDX-License-Identifier: Apache-2.0
#include "src/mutual_information/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "src/core/tensor/doubles.h"
#include "src/mutual_information/formula.h"

namespace similis::mutual_information_internal {
namespace {

using Doubles = std::vector<double>;

// An image's voxels of one channel, and the limits of their values.
struct Channel {
  Doubles values;
  double low = 0, high = 1;
};

// The weights of a value in all bins, and their derivatives by the value.
struct Weights {
  Doubles value, slope;
};

double cubic_b_spline(double d) {
  const double a = std::abs(d);
  if (a < 1) return 2.0 / 3 - a * a + a * a * a / 2;
  return a < 2 ? (2 - a) * (2 - a) * (2 - a) / 6 : 0;
}

double cubic_b_spline_slope(double d) {
  const double a = std::abs(d), sign = d < 0 ? -1 : 1;
  if (a < 1) return sign * (-2 * a + 1.5 * a * a);
  return a < 2 ? -sign * (2 - a) * (2 - a) / 2 : 0;
}

Weights weights_of(double v, const Channel& channel, const MutualInformationOptions& options) {
  const int bins = options.num_bins;
  const double span = channel.high - channel.low;
  const double u = span > 0 ? std::clamp((v - channel.low) / span, 0.0, 1.0) : 0;
  Weights result{
      Doubles(static_cast<std::size_t>(bins), 0), Doubles(static_cast<std::size_t>(bins), 0)};
  if (options.kernel == ParzenKernel::delta) {
    result.value[static_cast<std::size_t>(std::min(static_cast<int>(u * bins), bins - 1))] = 1;
    return result;
  }
  const double sigma = options.sigma_ratio / (2 * bins);  // as a share of the range
  double sum = 0, slope_sum = 0;
  for (int i = 0; i < bins; ++i) {
    const double from_centre = u - (i + 0.5) / bins;
    double& w = result.value[static_cast<std::size_t>(i)];
    double& s = result.slope[static_cast<std::size_t>(i)];
    if (options.kernel == ParzenKernel::b_spline) {
      w = cubic_b_spline(from_centre * bins);
      s = cubic_b_spline_slope(from_centre * bins) * bins;
    } else {
      w = std::exp(-from_centre * from_centre / (2 * sigma * sigma));
      s = -from_centre / (sigma * sigma) * w;
    }
    sum += w;
    slope_sum += s;
  }
  const bool has_slope = span > 0 && v >= channel.low && v <= channel.high;
  for (std::size_t i = 0; i < result.value.size(); ++i) {
    const double by_u = result.slope[i] / sum - result.value[i] * slope_sum / (sum * sum);
    result.slope[i] = has_slope ? by_u / span : 0;
    result.value[i] /= sum;
  }
  return result;
}

// The result, and its derivatives by p_ab.
struct ValueAndSlopes {
  double value = 0;
  Doubles by_p;
};

Doubles blurred(const Doubles& h, int bins, double sigma) {
  const int radius = static_cast<int>(std::max(4 * sigma, 0.5) + 0.5);
  const auto tap = [&](int k) {
    const double at = 1 / (std::sqrt(2.0) * sigma);
    return (std::erf((k + 0.5) * at) - std::erf((k - 0.5) * at)) / 2;
  };
  const auto index = [&](int a, int b) { return static_cast<std::size_t>(a * bins + b); };
  Doubles result(h.size(), 0);
  for (int a = 0; a < bins; ++a) {
    for (int b = 0; b < bins; ++b) {
      for (int i = std::max(0, a - radius); i <= std::min(bins - 1, a + radius); ++i) {
        for (int k = std::max(0, b - radius); k <= std::min(bins - 1, b + radius); ++k) {
          result[index(a, b)] += tap(i - a) * tap(k - b) * h[index(i, k)];
        }
      }
    }
  }
  return result;
}

// A margin of the histogram in whole bins under the same blur, scaled to sum to 1.
Doubles blurred_margin(const Doubles& margin, double sigma) {
  const auto bins = margin.size();
  const Doubles taps = [&] {
    Doubles delta((2 * bins + 1) * (2 * bins + 1), 0);
    delta[bins * (2 * bins + 1) + bins] = 1;
    return blurred(delta, static_cast<int>(2 * bins + 1), sigma);
  }();
  Doubles result(bins, 0);
  double sum = 0;
  for (std::size_t i = 0; i < bins; ++i) {
    for (std::size_t k = 0; k < bins; ++k) {
      double tap = 0;  // a column of the blurred impulse, summed over the other axis
      for (std::size_t l = 0; l < 2 * bins + 1; ++l)
        tap += taps[(bins + i - k) * (2 * bins + 1) + l];
      result[i] += tap * margin[k];
    }
    sum += result[i];
  }
  for (double& each : result) each /= sum;
  return result;
}

double log_or_0(double v) { return v > 0 ? std::log(v) : 0; }

ValueAndSlopes value_and_slopes(Doubles p, const MutualInformationOptions& options) {
  const auto bins = static_cast<std::size_t>(options.num_bins);
  Doubles counted_a(bins, 0), counted_b(bins, 0);
  for (std::size_t i = 0; i < p.size(); ++i) {
    counted_a[i / bins] += p[i];
    counted_b[i % bins] += p[i];
  }
  if (options.method == HistogramMethod::binned) {
    p = blurred(p, options.num_bins, options.sigma_ratio / 2);
  }
  double sum = 0;
  for (const double each : p) sum += each;
  ValueAndSlopes result{options.normalized ? 1.0 : 0.0, Doubles(p.size(), 0)};
  if (sum == 0) return result;
  Doubles p_a(bins, 0), p_b(bins, 0);
  for (std::size_t i = 0; i < p.size(); ++i) {
    p[i] /= sum;
    p_a[i / bins] += p[i];
    p_b[i % bins] += p[i];
  }
  if (options.method == HistogramMethod::binned) {
    p_a = blurred_margin(counted_a, options.sigma_ratio / 2);
    p_b = blurred_margin(counted_b, options.sigma_ratio / 2);
  }
  if (options.normalized) {
    double h_a = 0, h_b = 0, h_ab = 0;
    for (const double each : p_a) h_a -= each * log_or_0(each);
    for (const double each : p_b) h_b -= each * log_or_0(each);
    for (const double each : p) h_ab -= each * log_or_0(each);
    if (h_ab == 0) return result;
    result.value = (h_a + h_b) / h_ab;
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double by_margins = -log_or_0(p_a[i / bins]) - 1 - log_or_0(p_b[i % bins]) - 1;
      const double by_joint = -log_or_0(p[i]) - 1;
      result.by_p[i] = p[i] > 0 ? (by_margins - result.value * by_joint) / h_ab : 0;
    }
    return result;
  }
  result.value = 0;
  const double nr = options.smooth_nr, dr = options.smooth_dr;
  Doubles by_a(bins, 0), by_b(bins, 0);
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double product = p_a[i / bins] * p_b[i % bins];
    if (p[i] + nr == 0 || product + dr == 0) continue;
    const double argument = (p[i] + nr) / (product + dr) + dr;
    result.value += p[i] * std::log(argument);
    result.by_p[i] = std::log(argument) + p[i] / argument / (product + dr);
    const double by_product = -p[i] / argument * (p[i] + nr) / ((product + dr) * (product + dr));
    by_a[i / bins] += by_product * p_b[i % bins];
    by_b[i % bins] += by_product * p_a[i / bins];
  }
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i] > 0 || nr > 0) result.by_p[i] += by_a[i / bins] + by_b[i % bins];
  }
  return result;
}

using Limits = std::pair<double, double>;
constexpr Limits kNone = {
    std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};

Limits around(const Limits& a, const Limits& b) {
  return {std::min(a.first, b.first), std::max(a.second, b.second)};
}

// Both images cut into channels, with the voxels that count.
class Images {
 public:
  Images(const TensorView& x, const TensorView& y, const MutualInformationOptions& options)
      : options_(options),
        results_(static_cast<std::size_t>(x.shape[0] * x.shape[1])),
        voxels_(static_cast<std::size_t>(x.shape.count()) / results_),
        x_(to_doubles(x)),
        y_(to_doubles(y)) {
    const bool samples = options.sampling < 1;
    const auto threshold = static_cast<std::uint64_t>(options.sampling * 0x1p32);
    for (std::size_t i = 0; i < voxels_; ++i) {
      sampled_.push_back(!samples || is_sampled(i, options.seed, threshold));
    }
    if (options.mask.empty()) return;
    TensorView mask = options.mask;  // with leading axes of stride 0
    mask.shape = x.shape;
    mask.strides = x.strides;
    const int missing = x.shape.rank() - options.mask.shape.rank();
    for (int axis = 0; axis < x.shape.rank(); ++axis) {
      const bool own = axis >= missing && options.mask.shape[axis - missing] == x.shape[axis];
      mask.strides[axis] = own ? options.mask.strides[axis - missing] : 0;
    }
    mask_ = to_doubles(mask);
  }

  std::size_t results() const { return results_; }
  std::size_t voxels() const { return voxels_; }
  bool counts(std::size_t result, std::size_t i) const {
    return sampled_[i] && (mask_.empty() || mask_[result * voxels_ + i] > 0);
  }
  Channel x(std::size_t result) const { return channel(x_, result); }
  Channel y(std::size_t result) const { return channel(y_, result); }

 private:
  Channel channel(const Doubles& image, std::size_t result) const {
    const auto first = image.begin() + static_cast<std::ptrdiff_t>(result * voxels_);
    Channel channel{Doubles(first, first + static_cast<std::ptrdiff_t>(voxels_))};
    std::tie(channel.low, channel.high) = limits(image, result);
    return channel;
  }
  Limits limits(const Doubles& image, std::size_t result) const {
    switch (options_.range) {
      case ValueRange::fixed: return {options_.low, options_.high};
      case ValueRange::per_image: return limits_of(image, result);
      case ValueRange::common: return around(limits_of(x_, result), limits_of(y_, result));
      case ValueRange::unit_or_common: break;
    }
    Limits all = kNone;
    for (std::size_t r = 0; r < results_; ++r) {
      all = around(all, around(limits_of(x_, r), limits_of(y_, r)));
    }
    return all.first >= 0 && all.second <= 1 ? Limits{0, 1} : all;
  }
  Limits limits_of(const Doubles& image, std::size_t result) const {
    Limits found = kNone;
    for (std::size_t i = 0; i < voxels_; ++i) {
      const double v = image[result * voxels_ + i];
      if (counts(result, i)) found = around(found, {v, v});
    }
    return found;
  }

  const MutualInformationOptions& options_;
  std::size_t results_, voxels_;
  Doubles x_, y_, mask_;
  std::vector<bool> sampled_;
};

void add_voxels(const Images& images, std::size_t result, const MutualInformationOptions& options,
    Doubles* histogram) {
  const Channel x = images.x(result), y = images.y(result);
  MutualInformationOptions counted = options;
  if (options.method == HistogramMethod::binned) counted.kernel = ParzenKernel::delta;
  for (std::size_t i = 0; i < images.voxels(); ++i) {
    if (!images.counts(result, i)) continue;
    const Weights wx = weights_of(x.values[i], x, counted);
    const Weights wy = weights_of(y.values[i], y, counted);
    for (std::size_t a = 0; a < wx.value.size(); ++a) {
      if (wx.value[a] == 0) continue;
      for (std::size_t b = 0; b < wy.value.size(); ++b) {
        (*histogram)[a * wy.value.size() + b] += wx.value[a] * wy.value[b];
      }
    }
  }
}

void add_gradients(const Images& images, std::size_t result,
    const MutualInformationOptions& options, const Doubles& by_p, double factor,
    Reference* reference) {
  const Channel x = images.x(result), y = images.y(result);
  const std::size_t first = result * images.voxels();
  for (std::size_t i = 0; i < images.voxels(); ++i) {
    if (!images.counts(result, i)) continue;
    const Weights wx = weights_of(x.values[i], x, options);
    const Weights wy = weights_of(y.values[i], y, options);
    double by_x = 0, by_y = 0;
    for (std::size_t a = 0; a < wx.value.size(); ++a) {
      for (std::size_t b = 0; b < wy.value.size(); ++b) {
        by_x += wx.slope[a] * wy.value[b] * by_p[a * wy.value.size() + b];
        by_y += wx.value[a] * wy.slope[b] * by_p[a * wy.value.size() + b];
      }
    }
    reference->x_gradient[first + i] = by_x * factor;
    reference->y_gradient[first + i] = by_y * factor;
  }
}

}  // namespace

Reference reference_mutual_information(const TensorView& x, const TensorView& y,
    const MutualInformationOptions& options, const TensorView& upstream) {
  const Images images(x, y, options);
  const std::size_t results = images.results();
  const auto channels = static_cast<std::size_t>(x.shape[1]);
  const bool is_one = options.reduction == Reduction::mean || options.reduction == Reduction::sum;
  const bool is_per_image = options.reduction == Reduction::per_image;
  const std::size_t values = is_one ? 1 : is_per_image ? results / channels : results;
  // A mean is that of the results with voxels that count; NaN if there are none.
  Doubles divisors(values, options.reduction == Reduction::sum ? 1 : 0);
  for (std::size_t r = 0; options.reduction != Reduction::sum && r < results; ++r) {
    bool has_voxels = false;
    for (std::size_t i = 0; i < images.voxels(); ++i) has_voxels |= images.counts(r, i);
    divisors[r / (results / values)] += has_voxels ? 1 : 0;
  }
  const Doubles upstreams = upstream.empty() ? Doubles(values, 1) : to_doubles(upstream);
  Reference reference;
  reference.value.assign(values, 0);
  reference.x_gradient.assign(results * images.voxels(), 0);
  reference.y_gradient = reference.x_gradient;
  const auto entries = static_cast<std::size_t>(options.num_bins * options.num_bins);
  for (std::size_t r = 0; r < results; ++r) {
    Doubles histogram(entries, 0);
    add_voxels(images, r, options, &histogram);
    double count = 0;
    for (const double each : histogram) count += each;
    const ValueAndSlopes result = value_and_slopes(histogram, options);
    const std::size_t value = r / (results / values);
    reference.histogram.insert(reference.histogram.end(), histogram.begin(), histogram.end());
    reference.values.push_back(result.value);
    if (count == 0) continue;
    reference.value[value] += result.value / divisors[value];
    if (options.kernel == ParzenKernel::delta) continue;
    add_gradients(
        images, r, options, result.by_p, upstreams[value] / divisors[value] / count, &reference);
  }
  for (std::size_t value = 0; value < values; ++value) {
    if (divisors[value] == 0) reference.value[value] = std::numeric_limits<double>::quiet_NaN();
  }
  return reference;
}

}  // namespace similis::mutual_information_internal
