// SPDX-License-Identifier: Apache-2.0
// LNCC on the CPU: src/window's march adds up windows in vectors, cpu_tile-inl.h runs formula.h
// over its rows, and this file cuts the images into tiles and adds up what they return.
//
// All is f64, whatever the images are: sums of integers are exact then, and what other intensities
// lose is 1e-16 of the squares of their distance from the tile's middle pixel. Tiles and the order
// in which their sums are added depend on the images alone, so results are the same for any number
// of threads.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/lncc/cpu.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <vector>

#include "src/lncc/cpu_plan.h"
#include "src/lncc/cpu_tile-inl.h"
#include "src/window/groups.h"
#include "src/window/sliding_window-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::lncc_internal::HWY_NAMESPACE {

TileSums run_piece(const Plan& plan, const Piece& piece) {
  LnccTile operation(plan, piece);
  if (plan.pass.gradient == LnccGradient::ants && plan.pass.padding == Padding::valid) {
    operation.clear_gradients();
  }
  window_internal::HWY_NAMESPACE::March<LnccTile> march(
      plan.z, plan.y, plan.x, piece.tile, operation);
  march.run();
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

// Σ taps of the window centred on each pixel; what it sees outside counts unless it is cut there.
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

// The sums of each number of the results, and by what weights planes make it.
class GroupSums {
 public:
  explicit GroupSums(const Pass& pass)
      : pass_(pass), groups_(pass.reduction, pass.x.shape), sums_(groups_.size()) {}

  std::size_t of(std::int64_t image, std::int64_t channel) const {
    return groups_.of(image, channel);
  }

  void add(const std::vector<Piece>& pieces, const std::vector<TileSums>& sums) {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      TileSums& group = sums_[of(pieces[i].image, pieces[i].channel)];
      group.correlation += sums[i].correlation;
      group.weight += sums[i].weight;
    }
  }

  // All pixels weigh 1.
  void add_unweighted() {
    const Extents map = map_shape(pass_);
    const auto each = static_cast<double>(map.count()) / static_cast<double>(sums_.size());
    for (TileSums& group : sums_) group.weight += each;
  }

  double value(std::size_t group) const { return sums_[group].correlation * slope(group); }
  // What a unit of v at a pixel of weight 1 adds to the value; a mean over nothing is 0.
  double slope(std::size_t group) const {
    if (pass_.reduction == Reduction::sum) return pass_.weight;
    return sums_[group].weight > 0 ? pass_.weight / sums_[group].weight : 0;
  }

 private:
  const Pass& pass_;
  const Groups groups_;
  std::vector<TileSums> sums_;
};

void set_slopes(Plan& plan, const GroupSums& groups) {
  for (std::int64_t image = 0; image < plan.pass.x.shape[0]; ++image) {
    for (std::int64_t channel = 0; channel < plan.pass.x.shape[1]; ++channel) {
      plan.slope.push_back(upstream_of(plan.pass.upstream, image, channel) *
                           groups.slope(groups.of(image, channel)));
    }
  }
}

}  // namespace

void lncc_cpu(const Pass& pass, const Execution& exec) {
  Plan plan{.pass = pass,
      .z = Axis(pass.x.shape[2], pass.window.z, pass.padding),
      .y = Axis(pass.x.shape[3], pass.window.y, pass.padding),
      .x = Axis(pass.x.shape[4], pass.window.x, pass.padding),
      .window_weight_z = {},
      .window_weight_y = {},
      .window_weight_x = {},
      .slope = {}};
  plan.window_weight_z = window_weights(plan.z, pass.padding);
  plan.window_weight_y = window_weights(plan.y, pass.padding);
  plan.window_weight_x = window_weights(plan.x, pass.padding);
  const std::vector<Piece> pieces = pieces_of(pass.x.shape, pass.window);
  const auto run = [&](const Piece& piece) { return HWY_DYNAMIC_DISPATCH(run_piece)(plan, piece); };
  if (pass.reduction == Reduction::none) {
    run_pieces<TileSums>(pieces, exec, run);
    return;
  }
  GroupSums groups(pass);
  if (pass.mask.empty() && pass.valid_mask.empty()) {
    groups.add_unweighted();
  } else {
    groups.add(pieces, run_pieces<TileSums>(pieces, exec, [&](const Piece& piece) {
      return HWY_DYNAMIC_DISPATCH(weigh_piece)(plan, piece);
    }));
  }
  set_slopes(plan, groups);
  groups.add(pieces, run_pieces<TileSums>(pieces, exec, run));
  if (pass.value.empty()) return;
  write_values(pass.value, [&](std::size_t group) { return groups.value(group); });
}

}  // namespace similis::lncc_internal
#endif
