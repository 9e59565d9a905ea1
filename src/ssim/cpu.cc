// SPDX-License-Identifier: Apache-2.0
// SSIM on the CPU: src/window's SlidingWindow averages windows in vectors, cpu_tile-inl.h runs
// formula.h over its rows, and this file makes values and slopes of the sums that tiles return.
//
// Sums and moments are f64 whatever the images are: in f32 the variance of a flat area beside a
// bright one is lost in rounding (1e-4 of a gradient), and f64 is fast enough. s and d need no
// shift then. Tiles and the order in which their sums are added depend on the images alone, so
// results are the same for any number of threads.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ssim/cpu.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <vector>

#include "src/ssim/cpu_plan.h"
#include "src/ssim/cpu_tile-inl.h"
#include "src/window/groups.h"
#include "src/window/sliding_window-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::ssim_internal::HWY_NAMESPACE {

TileSums run_piece(const Plan& plan, const Piece& piece) {
  SsimTile operation(plan, piece);
  window_internal::HWY_NAMESPACE::SlidingWindow<SsimTile> sliding_window(
      plan.z, plan.y, plan.x, piece.tile, operation);
  sliding_window.run();
  if (plan.pass.l1_weight != 0 && plan.pass.reduction != Reduction::none) operation.sum_l1();
  return operation.sums();
}

TileSums weigh_piece(const Plan& plan, const Piece& piece) {
  SsimTile operation(plan, piece);
  operation.sum_weights();
  return operation.sums();
}

}  // namespace similis::ssim_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::ssim_internal {
namespace {

HWY_EXPORT(run_piece);
HWY_EXPORT(weigh_piece);

std::vector<double> window_weights(const Axis& axis) {
  std::vector<double> weights;
  for (std::int64_t i = 0; i < axis.extent(); ++i) weights.push_back(axis.weight(i));
  return weights;
}

double plane_size(const Extents& shape) {
  return static_cast<double>(shape[2] * shape[3] * shape[4]);
}

std::int64_t size(const Interval& interval) { return interval.last - interval.first; }

// The mean of a sum; over nothing it is 0, and so are slopes.
double mean_of(double sum, double weight) { return weight > 0 ? sum / weight : 0; }

}  // namespace

Plan::Plan(const Pass& whole)
    : pass(whole),
      z(pass.x.shape[2], pass.window.z, pass.padding, pass.counted.z),
      y(pass.x.shape[3], pass.window.y, pass.padding, pass.counted.y),
      x(pass.x.shape[4], pass.window.x, pass.padding),
      counted{intersection({0, z.extent()}, pass.counted.z),
          intersection({0, y.extent()}, pass.counted.y), {0, x.extent()}},
      window_weight_z(window_weights(z)),
      window_weight_y(window_weights(y)),
      window_weight_x(window_weights(x)) {}

TileSums Plan::unmasked_weights(std::size_t groups) const {
  const double planes =
      static_cast<double>(pass.x.shape[0] * pass.x.shape[1]) / static_cast<double>(groups);
  return {.weight = planes * plane_size(map_shape(pass)),
      .l1_weight =
          planes * static_cast<double>(size(counted.z) * size(counted.y) * size(counted.x))};
}

void Plan::add_slopes(double upstream, const TileSums& weights) {
  const bool is_sum = pass.adds_up();
  const double per_weight = is_sum ? 1 : mean_of(1, weights.weight);
  const double per_l1_weight = is_sum ? 1 : mean_of(1, weights.l1_weight);
  term_slope.push_back(upstream * (pass.term_weight * per_weight));
  const auto plane = static_cast<std::int64_t>(l1_slope.size());
  const std::int64_t channels = pass.x.shape[1];
  const double l1_upstream =
      pass.sums ? upstream_of(pass.l1_upstream, plane / channels, plane % channels) : upstream;
  l1_slope.push_back(l1_upstream * (pass.l1_weight * per_l1_weight));
}

std::array<double, 4> Plan::sums_of(const TileSums& sums) const {
  return {pass.bias * sums.weight + pass.term_weight * sums.term, sums.weight,
      pass.l1_weight * sums.l1, sums.l1_weight};
}

double Plan::value(const TileSums& sums) const {
  if (pass.adds_up()) {
    return pass.bias * sums.weight + pass.term_weight * sums.term + pass.l1_weight * sums.l1;
  }
  if (!(sums.weight > 0) && pass.of_nothing != 0) return pass.of_nothing;
  return pass.bias + pass.term_weight * mean_of(sums.term, sums.weight) +
         pass.l1_weight * mean_of(sums.l1, sums.l1_weight);
}

void ssim_cpu(const Pass& pass, const Execution& exec) {
  Plan plan(pass);
  run_and_reduce<TileSums>(
      plan, exec,
      [&](const Piece& piece) { return HWY_DYNAMIC_DISPATCH(weigh_piece)(plan, piece); },
      [&](const Piece& piece) { return HWY_DYNAMIC_DISPATCH(run_piece)(plan, piece); });
}

}  // namespace similis::ssim_internal
#endif
