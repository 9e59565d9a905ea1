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

#include "src/core/dispatch.h"
#include "src/core/parallel.h"
#include "src/lncc/cpu_plan.h"
#include "src/lncc/cpu_tile-inl.h"
#include "src/window/march-inl.h"

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

// Windows with depth hold rings of planes of five products and up to five fields: tiles of 32 rows
// of 64 pixels keep them in the second-level cache. Pictures take long rows.
std::vector<Piece> pieces_of(const Pass& pass) {
  const bool is_3d = pass.window.radius_z() > 0;
  const auto along_z = cut(pass.x.shape[2], is_3d ? 64 : 256);
  const auto along_y = cut(pass.x.shape[3], is_3d ? 32 : 64);
  const auto along_x = cut(pass.x.shape[4], is_3d ? 64 : 1024);
  std::vector<Piece> pieces;
  for (std::int64_t image = 0; image < pass.x.shape[0]; ++image) {
    for (std::int64_t channel = 0; channel < pass.x.shape[1]; ++channel) {
      for (const Interval& z : along_z) {
        for (const Interval& y : along_y) {
          for (const Interval& x : along_x) pieces.push_back({image, channel, {z, y, x}});
        }
      }
    }
  }
  return pieces;
}

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

// The results of a reduction to numbers: which planes make which number, and by what weights.
class Groups {
 public:
  explicit Groups(const Pass& pass)
      : pass_(pass), channels_(pass.x.shape[1]), sums_(static_cast<std::size_t>(count(pass))) {}

  std::size_t of(std::int64_t image, std::int64_t channel) const {
    switch (pass_.reduction) {
      case Reduction::per_image: return static_cast<std::size_t>(image);
      case Reduction::per_channel: return static_cast<std::size_t>(image * channels_ + channel);
      default: return 0;
    }
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
  std::size_t size() const { return sums_.size(); }

 private:
  static std::int64_t count(const Pass& pass) {
    if (pass.reduction == Reduction::per_image) return pass.x.shape[0];
    if (pass.reduction == Reduction::per_channel) return pass.x.shape[0] * pass.x.shape[1];
    return 1;
  }

  const Pass& pass_;
  const std::int64_t channels_;
  std::vector<TileSums> sums_;
};

// Upstream of a group's value: tensors of rank 0, 1 ([N]) or 2 ([N,C]).
double upstream_of(const Pass& pass, std::int64_t image, std::int64_t channel) {
  const TensorView& upstream = pass.upstream;
  if (upstream.empty()) return 1;
  std::int64_t offset = 0;
  if (upstream.shape.rank() > 0) offset += image * upstream.strides[0];
  if (upstream.shape.rank() > 1) offset += channel * upstream.strides[1];
  return element(upstream, offset);
}

void set_slopes(Plan& plan, const Groups& groups) {
  for (std::int64_t image = 0; image < plan.pass.x.shape[0]; ++image) {
    for (std::int64_t channel = 0; channel < plan.pass.x.shape[1]; ++channel) {
      plan.slope.push_back(
          upstream_of(plan.pass, image, channel) * groups.slope(groups.of(image, channel)));
    }
  }
}

void write_values(const Pass& pass, const Groups& groups) {
  for (std::size_t group = 0; group < groups.size(); ++group) {
    if (pass.value.dtype == DType::f64) {
      static_cast<double*>(pass.value.data)[group] = groups.value(group);
    } else {
      static_cast<float*>(pass.value.data)[group] = static_cast<float>(groups.value(group));
    }
  }
}

template <class Run>
std::vector<TileSums> run_all(
    const Plan& plan, const std::vector<Piece>& pieces, const Execution& exec, const Run& run) {
  std::vector<TileSums> sums(pieces.size());
  parallel_for(exec, static_cast<std::int64_t>(pieces.size()), [&](std::int64_t i) {
    const auto index = static_cast<std::size_t>(i);
    sums[index] = run(plan, pieces[index]);
  });
  return sums;
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
  const std::vector<Piece> pieces = pieces_of(pass);
  const auto run = [](const Plan& p, const Piece& piece) {
    return HWY_DYNAMIC_DISPATCH(run_piece)(p, piece);
  };
  if (pass.reduction == Reduction::none) {
    run_all(plan, pieces, exec, run);
    return;
  }
  Groups groups(pass);
  if (pass.mask.empty() && pass.valid_mask.empty()) {
    groups.add_unweighted();
  } else {
    groups.add(pieces, run_all(plan, pieces, exec, [](const Plan& p, const Piece& piece) {
      return HWY_DYNAMIC_DISPATCH(weigh_piece)(p, piece);
    }));
  }
  set_slopes(plan, groups);
  groups.add(pieces, run_all(plan, pieces, exec, run));
  if (!pass.value.empty()) write_values(pass, groups);
}

}  // namespace similis::lncc_internal
#endif
