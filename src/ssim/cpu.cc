// SPDX-License-Identifier: Apache-2.0
// SSIM on the CPU: src/window's march averages windows in vectors, cpu_tile-inl.h runs formula.h
// over its rows, and this file cuts the images into tiles and adds up what they return.
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
  window_internal::HWY_NAMESPACE::March<SsimTile> march(
      plan.z, plan.y, plan.x, piece.tile, operation);
  march.run();
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
      group.term += sums[i].term;
      group.l1 += sums[i].l1;
      group.weight += sums[i].weight;
      group.l1_weight += sums[i].l1_weight;
    }
  }

  // All pixels weigh 1.
  void add_unweighted() {
    const double images = static_cast<double>(pass_.x.shape[0] * pass_.x.shape[1]) /
                          static_cast<double>(sums_.size());
    for (TileSums& group : sums_) {
      group.weight += images * static_cast<double>(plane_size(map_shape(pass_)));
      group.l1_weight += images * static_cast<double>(plane_size(pass_.x.shape));
    }
  }

  double value(std::size_t group) const {
    const TileSums& sums = sums_[group];
    if (pass_.reduction == Reduction::sum) {
      return pass_.bias * sums.weight + pass_.term_weight * sums.term + pass_.l1_weight * sums.l1;
    }
    return pass_.bias + pass_.term_weight * share(sums.term, sums.weight) +
           pass_.l1_weight * share(sums.l1, sums.l1_weight);
  }

  // What a unit of 1 - SSIM, and of |x - y|, at a pixel of weight 1 adds to the value.
  double term_slope(std::size_t group) const {
    return pass_.term_weight * per_weight(sums_[group].weight);
  }
  double l1_slope(std::size_t group) const {
    return pass_.l1_weight * per_weight(sums_[group].l1_weight);
  }

 private:
  static std::int64_t plane_size(const Extents& shape) { return shape[2] * shape[3] * shape[4]; }
  // A mean over nothing is 0: nothing differs there.
  static double share(double sum, double weight) { return weight > 0 ? sum / weight : 0; }
  double per_weight(double weight) const {
    return pass_.reduction == Reduction::sum ? 1 : share(1, weight);
  }

  const Pass& pass_;
  const Groups groups_;
  std::vector<TileSums> sums_;
};

void set_slopes(Plan& plan, const GroupSums& groups) {
  const Pass& pass = plan.pass;
  for (std::int64_t image = 0; image < pass.x.shape[0]; ++image) {
    for (std::int64_t channel = 0; channel < pass.x.shape[1]; ++channel) {
      const double upstream = upstream_of(pass.upstream, image, channel);
      const std::size_t group = groups.of(image, channel);
      plan.term_slope.push_back(upstream * groups.term_slope(group));
      plan.l1_slope.push_back(upstream * groups.l1_slope(group));
    }
  }
}

}  // namespace

void ssim_cpu(const Pass& pass, const Execution& exec) {
  Plan plan{.pass = pass,
      .z = Axis(pass.x.shape[2], pass.window.z, pass.padding),
      .y = Axis(pass.x.shape[3], pass.window.y, pass.padding),
      .x = Axis(pass.x.shape[4], pass.window.x, pass.padding),
      .window_weight_z = {},
      .window_weight_y = {},
      .window_weight_x = {},
      .term_slope = {},
      .l1_slope = {}};
  plan.window_weight_z = window_weights(plan.z);
  plan.window_weight_y = window_weights(plan.y);
  plan.window_weight_x = window_weights(plan.x);
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

}  // namespace similis::ssim_internal
#endif
