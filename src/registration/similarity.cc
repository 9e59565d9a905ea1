// SPDX-License-Identifier: Apache-2.0
#include "src/registration/similarity.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "similis/lncc.hpp"
#include "similis/mutual_information.hpp"
#include "src/registration/passes.h"

namespace similis::registration_internal {
namespace {

struct Call {
  const GridRows rows;
  const Tensor &f, &j;
  const TensorView& weights;
  double count;
  const TensorView& gradient;
  const Execution& exec;

  std::int64_t channels() const { return f.shape[1]; }
};

TensorView channel_of(const TensorView& images, std::int64_t channel) {
  TensorView view = images;
  view.offset += channel * view.strides[1];
  return view;
}

// Adds weight·by times a metric's own gradient, which `scratch` holds.
void add_to(const Call& call, double factor, const Tensor& scratch) {
  add_scaled(scratch.device, scratch.shape.count(), factor, scratch, call.gradient, call.exec);
}

// Windows see the voxels that count alone: those outside the image do not, as outside the mask.
double lncc_of(const Call& call, const MetricTerm& term) {
  LnccOptions options{.window_size = term.window_size,
      .padding = Padding::renormalize,
      .reduction = Reduction::mean,
      .valid_mask = call.weights};
  const Tensor value = allocate({}, DType::f64, call.j.device, call.exec);
  Tensor slope;
  LnccRequest request{.value = value};
  if (!call.gradient.empty()) {
    slope = allocate(call.j.shape, call.j.dtype, call.j.device, call.exec);
    request.y_gradient = slope;
  }
  lncc_into(call.f, call.j, request, options, call.exec);
  if (!slope.empty()) add_to(call, term.weight * call.count, slope);
  return item(value);
}

double mutual_information_of(const Call& call, const MetricTerm& term) {
  const MutualInformationOptions options{.num_bins = term.num_bins,
      .range = ValueRange::fixed,
      .low = 0,
      .high = 1,
      .sampling = term.sampling,
      .seed = term.seed,
      .mask = call.weights};
  const Tensor value = allocate({}, DType::f64, call.j.device, call.exec);
  Tensor slope;
  MutualInformationRequest request;
  request.value = value;
  if (!call.gradient.empty()) {
    slope = allocate(call.j.shape, call.j.dtype, call.j.device, call.exec);
    request.y_gradient = slope;
  }
  mutual_information_into(call.f, call.j, request, options, call.exec);
  if (!slope.empty()) add_to(call, term.weight * call.count, slope);
  return item(value);
}

// Pearson's correlation, the negative mean squared difference or the overlap of one channel.
double by_moments(const Call& call, const MetricTerm& term, std::int64_t channel) {
  const TensorView f = channel_of(call.f, channel), j = channel_of(call.j, channel);
  const Moments m = moments(call.rows, f, j, call.weights, call.exec);
  const double n = m.count;
  const double factor = term.weight * call.count / static_cast<double>(call.channels());
  double value = 0;
  LinearGradient by{};
  if (term.metric == RegisterMetric::mse) {
    value = -(m.ff - 2 * m.fj + m.jj) / n;
    by.by_f = 2 * factor / n;
    by.by_j = -by.by_f;
  } else if (term.metric == RegisterMetric::dice) {
    const double sum = m.f + m.j;
    if (!(sum > 0)) return 0;
    value = 2 * m.fj / sum;
    by.by_f = 2 * factor / sum;
    by.mean_f = m.fj / sum;
  } else {
    const double mean_f = m.f / n, mean_j = m.j / n;
    const double ff = m.ff - n * mean_f * mean_f, jj = m.jj - n * mean_j * mean_j,
                 fj = m.fj - n * mean_f * mean_j;
    if (!(ff > 0) || !(jj > 0)) return 0;
    const double norm = std::sqrt(ff * jj);
    value = fj / norm;
    by = {.by_f = factor / norm, .mean_f = mean_f, .by_j = -factor * value / jj, .mean_j = mean_j};
  }
  if (!call.gradient.empty()) {
    add_gradient(call.rows, f, j, call.weights, by, channel_of(call.gradient, channel), call.exec);
  }
  return value;
}

double value_of(const Call& call, const MetricTerm& term) {
  if (term.metric == RegisterMetric::lncc) return lncc_of(call, term);
  if (term.metric == RegisterMetric::mi) return mutual_information_of(call, term);
  double sum = 0;
  for (std::int64_t c = 0; c < call.channels(); ++c) sum += by_moments(call, term, c);
  return sum / static_cast<double>(call.channels());
}

}  // namespace

double similarity(const std::vector<MetricTerm>& terms, const Grid& grid, const Tensor& f,
    const Tensor& j, const TensorView& weights, std::int64_t count, const TensorView& gradient,
    const Execution& exec) {
  const Call call{GridRows(grid), f, j, weights, static_cast<double>(count), gradient, exec};
  if (!gradient.empty()) {
    fill(grid.device, gradient.shape.count(), 0, gradient, exec);
  }
  if (count == 0) return -std::numeric_limits<double>::infinity();
  double sum = 0;
  for (const MetricTerm& term : terms) sum += term.weight * value_of(call, term);
  return sum;
}

}  // namespace similis::registration_internal
