// SPDX-License-Identifier: Apache-2.0
// MS-SSIM as the paper writes it: the reference of SSIM at each level, halved images below it, the
// product of the means' powers, and the chain rule back through all of it.
#include "src/ms_ssim/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/core/tensor/doubles.h"

namespace similis::ms_ssim_internal {
namespace {

using ssim_internal::Reference;
using ssim_internal::Term;

// The two elements along an axis whose mean is one of the halved axis; -1 is a zero.
struct Halves {
  std::int64_t first, second;
};

std::vector<Halves> halves(std::int64_t extent, Downsample rule, bool is_any_odd) {
  std::int64_t before = 0, after = 0;  // number of elements added at the ends
  if (rule == Downsample::vainf) before = after = extent % 2;
  if (rule == Downsample::ceil) after = extent % 2;
  if (rule == Downsample::piq) before = is_any_odd ? 1 : 0;
  const auto element = [&](std::int64_t position) {
    const std::int64_t index = position - before;
    if (index >= 0 && index < extent) return index;
    return rule == Downsample::vainf ? -1 : std::clamp<std::int64_t>(index, 0, extent - 1);
  };
  std::vector<Halves> result;
  for (std::int64_t i = 0; i + 2 <= before + extent + after; i += 2) {
    result.push_back({element(i), element(i + 1)});
  }
  return result;
}

// Calls visit(fine, coarse) for each element of an array of `shape` and the element that it is half
// of once the axis is halved.
template <class Visit>
void for_each_half(
    const Extents& shape, int axis, const std::vector<Halves>& along, const Visit& visit) {
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= shape[i];
  for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  std::int64_t coarse = 0;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (const Halves& pair : along) {
      for (std::int64_t i = 0; i < inner; ++i, ++coarse) {
        for (const std::int64_t element : {pair.first, pair.second}) {
          if (element < 0) continue;
          const std::int64_t fine = (o * shape[axis] + element) * inner + i;
          visit(static_cast<std::size_t>(fine), static_cast<std::size_t>(coarse));
        }
      }
    }
  }
}

// The images at one level and how their axes were halved to get there, one after the other.
struct Level {
  struct Step {
    Extents shape;  // before it
    int axis;
    std::vector<Halves> along;
  };
  std::vector<Step> steps;
  Extents shape;
  std::vector<double> x, y;
  std::vector<double> mask;  // shaped as x; empty if none

  TensorView view(const std::vector<double>& image) const {
    return {image.data(), shape, DType::f64};
  }
};

std::vector<double> halve(const std::vector<double>& fine, const Level::Step& step) {
  Extents shape = step.shape;
  shape[step.axis] = static_cast<std::int64_t>(step.along.size());
  std::vector<double> coarse(static_cast<std::size_t>(shape.count()), 0);
  for_each_half(step.shape, step.axis, step.along,
      [&](std::size_t f, std::size_t c) { coarse[c] += fine[f] / 2; });
  return coarse;
}

// The transpose: the part of each fine element in the coarse ones.
std::vector<double> spread(const std::vector<double>& coarse, const Level::Step& step) {
  std::vector<double> fine(static_cast<std::size_t>(step.shape.count()), 0);
  for_each_half(step.shape, step.axis, step.along,
      [&](std::size_t f, std::size_t c) { fine[f] += coarse[c] / 2; });
  return fine;
}

Level coarser(const Level& level, Downsample rule) {
  Level result{.steps = {}, .shape = level.shape, .x = level.x, .y = level.y, .mask = level.mask};
  bool is_any_odd = false;
  for (int axis = 2; axis < level.shape.rank(); ++axis) is_any_odd |= level.shape[axis] % 2 != 0;
  for (int axis = 2; axis < level.shape.rank(); ++axis) {
    const Level::Step step{
        .shape = result.shape, .axis = axis, .along = halves(level.shape[axis], rule, is_any_odd)};
    result.x = halve(result.x, step);
    result.y = halve(result.y, step);
    if (!result.mask.empty()) result.mask = halve(result.mask, step);
    result.shape[axis] = static_cast<std::int64_t>(step.along.size());
    result.steps.push_back(step);
  }
  return result;
}

// MS-SSIM of one channel from the means of 1 - cs, and of 1 - SSIM at the coarsest level. Long, so
// that 1 - MS-SSIM is precise where it is small.
long double product(const std::vector<double>& losses, const std::vector<double>& weights) {
  long double result = 1;
  for (std::size_t level = 0; level < losses.size(); ++level) {
    const long double mean = std::max(0.0L, 1 - static_cast<long double>(losses[level]));
    result *= std::pow(mean, static_cast<long double>(weights[level]));
  }
  return result;
}

// d(MS-SSIM)/d(mean of one level); 0 where a mean is cut off at 0.
double slope(
    const std::vector<double>& losses, const std::vector<double>& weights, std::size_t level) {
  const double mean = 1 - losses[level];
  if (mean <= 0 || weights[level] == 0) return 0;
  return static_cast<double>(product(losses, weights)) * weights[level] / mean;
}

class Calculation {
 public:
  Calculation(const TensorView& x, const TensorView& y, const MsSsimRequest& request,
      const MsSsimOptions& options)
      : request_(request),
        options_(options),
        planes_(static_cast<std::size_t>(x.shape[0] * x.shape[1])) {
    ssim_options_ = {.data_range = options.data_range.value_or(x.dtype == DType::u8 ? 255 : 1),
        .window_size = options.window_size,
        .sigma = options.sigma,
        .k1 = options.k1,
        .k2 = options.k2,
        .padding = options.padding,
        .reduction = Reduction::per_channel};
    levels_.push_back({.steps = {},
        .shape = x.shape,
        .x = to_doubles(x),
        .y = to_doubles(y),
        .mask = options.mask.empty() ? std::vector<double>{}
                                     : broadcast_to_doubles(options.mask, x.shape)});
    while (levels_.size() < options.weights.size()) {
      levels_.push_back(coarser(levels_.back(), options.downsample));
    }
    if (options.reduction == Reduction::per_channel) result_.shape = {x.shape[0], x.shape[1]};
    if (options.reduction == Reduction::per_image) result_.shape = {x.shape[0]};
  }

  Reference run() {
    find_losses();
    reduce();
    find_gradients();
    return result_;
  }

 private:
  Reference ssim_at(std::size_t level, const SsimRequest& request) const {
    const Level& images = levels_[level];
    const Term term = level + 1 == levels_.size() ? Term::ssim : Term::contrast;
    SsimOptions options = ssim_options_;
    if (!images.mask.empty()) options.mask = images.view(images.mask);
    return reference_ssim(images.view(images.x), images.view(images.y), request, options, term);
  }

  // True if each level that counts has a weight where its map is.
  bool exists(std::size_t plane) const {
    for (std::size_t level = 0; level < levels_.size(); ++level) {
      const Level& images = levels_[level];
      if (images.mask.empty() || options_.weights[level] == 0) continue;
      const Extents& shape = images.shape;
      const int rank = shape.rank();
      const std::int64_t height = shape[rank - 2], width = shape[rank - 1];
      const std::int64_t depth = rank == 5 ? shape[2] : 1;
      const bool is_cut = options_.padding == Padding::valid;
      const std::int64_t rim_y = is_cut ? options_.window_size.y() / 2 : 0;
      const std::int64_t rim_x = is_cut ? options_.window_size.x() / 2 : 0;
      const std::int64_t rim_z = is_cut && rank == 5 ? options_.window_size.z() / 2 : 0;
      double sum = 0;
      for (std::int64_t z = rim_z; z < depth - rim_z; ++z) {
        for (std::int64_t y = rim_y; y < height - rim_y; ++y) {
          for (std::int64_t x = rim_x; x < width - rim_x; ++x) {
            const std::int64_t row = (static_cast<std::int64_t>(plane) * depth + z) * height + y;
            sum += images.mask[static_cast<std::size_t>(row * width + x)];
          }
        }
      }
      if (sum == 0) return false;
    }
    return true;
  }

  void find_losses() {
    losses_.assign(planes_, {});
    for (std::size_t level = 0; level < levels_.size(); ++level) {
      const Reference means = ssim_at(level, {.form = SsimRequest::Form::loss});
      for (std::size_t plane = 0; plane < planes_; ++plane) {
        losses_[plane].push_back(means.value[plane]);
      }
    }
  }

  std::size_t results() const { return static_cast<std::size_t>(result_.shape.count()); }
  std::size_t result_of(std::size_t plane) const { return plane * results() / planes_; }
  double share(std::size_t result) const {
    if (options_.reduction == Reduction::sum) return 1;
    double planes = 0;
    for (std::size_t plane = 0; plane < planes_; ++plane) {
      planes += result_of(plane) == result && exists(plane) ? 1 : 0;
    }
    if (planes == 0) return is_loss() ? 1 : std::numeric_limits<double>::quiet_NaN();
    return 1 / planes;
  }
  bool is_loss() const { return request_.form == SsimRequest::Form::loss; }

  void reduce() {
    std::vector<long double> sums(results(), 0);
    for (std::size_t plane = 0; plane < planes_; ++plane) {
      if (!exists(plane)) continue;
      const long double value = product(losses_[plane], options_.weights);
      sums[result_of(plane)] += is_loss() ? 1 - value : value;
    }
    for (std::size_t result = 0; result < sums.size(); ++result) {
      result_.value.push_back(static_cast<double>(sums[result] * share(result)));
    }
  }

  // Goes from the coarsest level to the finest; each adds its own gradient to that of the coarser
  // ones.
  void find_gradients() {
    const std::vector<double> upstream = request_.upstream.empty()
                                             ? std::vector<double>(results(), 1)
                                             : to_doubles(request_.upstream);
    const Extents per_channel = {levels_[0].shape[0], levels_[0].shape[1]};
    for (std::size_t level = levels_.size(); level-- > 0;) {
      std::vector<double> slopes;
      for (std::size_t plane = 0; plane < planes_; ++plane) {
        if (!exists(plane)) {
          slopes.push_back(0);
          continue;
        }
        const std::size_t result = result_of(plane);
        slopes.push_back(upstream[result] * share(result) * (is_loss() ? -1 : 1) *
                         slope(losses_[plane], options_.weights, level));
      }
      const Reference own = ssim_at(level, {.upstream = {slopes.data(), per_channel, DType::f64}});
      add(own.x_gradient, level, result_.x_gradient);
      add(own.y_gradient, level, result_.y_gradient);
    }
  }

  // `gradient`, which is that of the next coarser level, becomes this level's.
  void add(const std::vector<double>& own, std::size_t level, std::vector<double>& gradient) const {
    if (gradient.empty()) {
      gradient = own;
      return;
    }
    const std::vector<Level::Step>& steps = levels_[level + 1].steps;
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
      gradient = spread(gradient, *step);
    }
    for (std::size_t i = 0; i < own.size(); ++i) gradient[i] += own[i];
  }

  const MsSsimRequest& request_;
  const MsSsimOptions& options_;
  const std::size_t planes_;
  SsimOptions ssim_options_;
  std::vector<Level> levels_;                // finest first
  std::vector<std::vector<double>> losses_;  // [plane][level]
  Reference result_;
};

}  // namespace

Reference reference_ms_ssim(const TensorView& x, const TensorView& y, const MsSsimRequest& request,
    const MsSsimOptions& options) {
  return Calculation(x, y, request, options).run();
}

}  // namespace similis::ms_ssim_internal
