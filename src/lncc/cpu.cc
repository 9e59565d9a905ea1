// SPDX-License-Identifier: Apache-2.0
// LNCC on the CPU: src/window's SlidingWindow adds up windows in vectors, cpu_tile-inl.h runs
// formula.h over its rows, and this file makes values and slopes of the sums that tiles return.
//
// All is f64, whatever the images are: sums of integers are exact then, and other intensities lose
// 1e-16 of the squares of their distance from the tile's middle pixel. Tiles and the order in which
// their sums are added depend on the images alone, so results are the same for any number of
// threads.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/lncc/cpu.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <limits>
#include <vector>

#include "src/lncc/cpu_plan.h"
#include "src/lncc/cpu_tile-inl.h"
#include "src/window/groups.h"
#include "src/window/sliding_window-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::lncc_internal::HWY_NAMESPACE {

TileSums run_piece(const Plan& plan, const Piece& piece) {
  LnccTile operation(plan, piece);
  const bool is_rim_empty = plan.pass.padding == Padding::valid || !plan.pass.counted.are_all();
  if (plan.pass.gradient == LnccGradient::ants && is_rim_empty) {
    operation.clear_gradients();
  }
  window_internal::HWY_NAMESPACE::SlidingWindow<LnccTile> sliding_window(
      plan.z, plan.y, plan.x, piece.tile, operation);
  sliding_window.run();
  return operation.sums();
}

TileSums weigh_piece(const Plan& plan, const Piece& piece) {
  LnccTile operation(plan, piece);
  operation.sum_weights();
  return operation.sums();
}

}  // namespace similis::lncc_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::lncc_internal {
namespace {

HWY_EXPORT(run_piece);
HWY_EXPORT(weigh_piece);

// Σ taps of the window centred on each pixel; taps outside the image count unless the window is
// cut.
std::vector<double> window_weights(const Axis& axis, Padding padding) {
  const auto& taps = axis.taps();
  std::vector<double> weights;
  for (std::int64_t centre = 0; centre < axis.extent(); ++centre) {
    double sum = 0;
    for (std::size_t k = 0; k < taps.size(); ++k) {
      const std::int64_t pixel = centre - axis.radius() + static_cast<std::int64_t>(k);
      const bool is_inside = pixel >= 0 && pixel < axis.extent();
      if (is_inside || padding != Padding::renormalize) sum += taps[k];
    }
    weights.push_back(sum);
  }
  return weights;
}

// The derivative of a group's value by v at a pixel of weight 1; 0 for a mean over nothing.
double slope_of(const Pass& pass, const TileSums& weights) {
  if (pass.adds_up()) return pass.weight;
  return weights.weight > 0 ? pass.weight / weights.weight : 0;
}

}  // namespace

Plan::Plan(const Pass& whole)
    : pass(whole),
      z(pass.x.shape[2], pass.window.z, pass.padding, pass.counted.z),
      y(pass.x.shape[3], pass.window.y, pass.padding, pass.counted.y),
      x(pass.x.shape[4], pass.window.x, pass.padding),
      window_weight_z(window_weights(z, pass.padding)),
      window_weight_y(window_weights(y, pass.padding)),
      window_weight_x(window_weights(x, pass.padding)) {}

TileSums Plan::unmasked_weights(std::size_t groups) const {
  const Extents map = map_shape(pass);
  return {.weight = static_cast<double>(map.count()) / static_cast<double>(groups)};
}

void Plan::add_slopes(double upstream, const TileSums& weights) {
  slope.push_back(upstream * slope_of(pass, weights));
}

double Plan::value(const TileSums& sums) const {
  if (!pass.adds_up() && !pass.is_loss() && !(sums.weight > 0)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return sums.correlation * slope_of(pass, sums);
}

void lncc_cpu(const Pass& pass, const Execution& exec) {
  Plan plan(pass);
  run_and_reduce<TileSums>(
      plan, exec,
      [&](const Piece& piece) { return HWY_DYNAMIC_DISPATCH(weigh_piece)(plan, piece); },
      [&](const Piece& piece) { return HWY_DYNAMIC_DISPATCH(run_piece)(plan, piece); });
}

}  // namespace similis::lncc_internal
#endif
