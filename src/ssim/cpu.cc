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

#include "src/core/dispatch.h"
#include "src/core/parallel.h"
#include "src/ssim/cpu_plan.h"
#include "src/ssim/cpu_tile-inl.h"
#include "src/window/march-inl.h"

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

// Tiles of 64 rows of 1024 pixels: long rows are what memory delivers fastest, 64 leave work for
// many threads at 31 % of halo for a gradient (256 rows take 5 % less time, for a quarter of the
// tiles). Windows with depth hold rings of planes, so their tiles are smaller.
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

std::vector<double> window_weights(const Axis& axis) {
  std::vector<double> weights;
  for (std::int64_t i = 0; i < axis.extent(); ++i) weights.push_back(axis.weight(i));
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
  std::size_t size() const { return sums_.size(); }

 private:
  static std::int64_t count(const Pass& pass) {
    if (pass.reduction == Reduction::per_image) return pass.x.shape[0];
    if (pass.reduction == Reduction::per_channel) return pass.x.shape[0] * pass.x.shape[1];
    return 1;
  }
  static std::int64_t plane_size(const Extents& shape) { return shape[2] * shape[3] * shape[4]; }
  // A mean over nothing is 0: nothing differs there.
  static double share(double sum, double weight) { return weight > 0 ? sum / weight : 0; }
  double per_weight(double weight) const {
    return pass_.reduction == Reduction::sum ? 1 : share(1, weight);
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
  const Pass& pass = plan.pass;
  for (std::int64_t image = 0; image < pass.x.shape[0]; ++image) {
    for (std::int64_t channel = 0; channel < pass.x.shape[1]; ++channel) {
      const double upstream = upstream_of(pass, image, channel);
      const std::size_t group = groups.of(image, channel);
      plan.term_slope.push_back(upstream * groups.term_slope(group));
      plan.l1_slope.push_back(upstream * groups.l1_slope(group));
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

}  // namespace similis::ssim_internal
#endif
