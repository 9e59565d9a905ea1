// SPDX-License-Identifier: Apache-2.0
// Reductions of windowed measures to numbers on the CPU. All planes whose pixels are reduced to the
// same number form a group; run_and_reduce() is the body of such a measure's pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "similis/reduction.hpp"
#include "src/core/tensor/dispatch.h"
#include "src/window/piece.h"

namespace similis {

/// The groups of images [N,C,…].
class Groups {
 public:
  Groups(Reduction reduction, const Extents& images)
      : reduction_(reduction), images_(images[0]), channels_(images[1]) {}

  std::size_t of(std::int64_t image, std::int64_t channel) const {
    switch (reduction_) {
      case Reduction::per_image: return static_cast<std::size_t>(image);
      case Reduction::per_channel: return static_cast<std::size_t>(image * channels_ + channel);
      default: return 0;
    }
  }
  std::size_t size() const { return of(images_ - 1, channels_ - 1) + 1; }

 private:
  Reduction reduction_;
  std::int64_t images_, channels_;
};

/// The upstream gradient of a plane's group. `upstream` is a scalar, [N] or [N,C]; empty is 1.
inline double upstream_of(const TensorView& upstream, std::int64_t image, std::int64_t channel) {
  if (upstream.empty()) return 1;
  std::int64_t offset = 0;
  if (upstream.shape.rank() > 0) offset += image * upstream.strides[0];
  if (upstream.shape.rank() > 1) offset += channel * upstream.strides[1];
  return element(upstream, offset);
}

/// value[group] = of_group(group), in a dense tensor of f32 or f64.
template <class OfGroup> void write_values(const TensorView& value, const OfGroup& of_group) {
  const auto count = static_cast<std::size_t>(value.shape.count());
  for (std::size_t group = 0; group < count; ++group) {
    if (value.dtype == DType::f64) {
      static_cast<double*>(value.data())[group] = of_group(group);
    } else {
      static_cast<float*>(value.data())[group] = static_cast<float>(of_group(group));
    }
  }
}

/// value[k][plane] = of_plane(plane)[k], in a dense [K,N,C] of f64.
template <class OfPlane> void write_sums(const TensorView& value, const OfPlane& of_plane) {
  const auto planes = static_cast<std::size_t>(value.shape[1] * value.shape[2]);
  for (std::size_t plane = 0; plane < planes; ++plane) {
    const auto sums = of_plane(plane);
    for (std::size_t k = 0; k < static_cast<std::size_t>(value.shape[0]); ++k) {
      static_cast<double*>(value.data())[k * planes + plane] = sums[k];
    }
  }
}

/// The sums of the tiles of each group. TileSums has += and starts at 0.
template <class TileSums> class GroupSums {
 public:
  explicit GroupSums(const Groups& groups) : groups_(groups), sums_(groups.size()) {}

  void add(const std::vector<Piece>& pieces, const std::vector<TileSums>& sums) {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      sums_[groups_.of(pieces[i].image, pieces[i].channel)] += sums[i];
    }
  }
  void add_to_each_group(const TileSums& sums) {
    for (TileSums& group : sums_) group += sums;
  }

  const TileSums& of(std::int64_t image, std::int64_t channel) const {
    return sums_[groups_.of(image, channel)];
  }
  const TileSums& operator[](std::size_t group) const { return sums_[group]; }

 private:
  Groups groups_;
  std::vector<TileSums> sums_;
};

/// Runs a pass tile by tile and writes pass.value. run(piece) computes a tile and returns its sums;
/// weigh(piece) returns its weights alone. A mean's gradient needs the weights of the whole group
/// before the tiles run, so with masks the tiles are weighed first. The plan has
///   pass                           with x, mask, valid_mask, reduction, sums, value and upstream
///   unmasked_weights(groups)       the weights of one group where each pixel weighs 1
///   add_slopes(upstream, weights)  called for each plane, image by image
///   value(sums)                    the number of a group
///   sums_of(sums)                  the numbers of a plane if pass.sums
template <class TileSums, class Plan, class Weigh, class Run>
void run_and_reduce(Plan& plan, const Execution& exec, const Weigh& weigh, const Run& run) {
  const auto& pass = plan.pass;
  const std::vector<Piece> pieces = pieces_of(pass.x.shape, pass.window);
  if (pass.reduction == Reduction::none) {
    run_pieces<TileSums>(pieces, exec, run);
    return;
  }
  const Groups groups(pass.reduction, pass.x.shape);
  GroupSums<TileSums> sums(groups);
  if (pass.mask.empty() && pass.valid_mask.empty()) {
    sums.add_to_each_group(plan.unmasked_weights(groups.size()));
  } else {
    sums.add(pieces, run_pieces<TileSums>(pieces, exec, weigh));
  }
  for (std::int64_t image = 0; image < pass.x.shape[0]; ++image) {
    for (std::int64_t channel = 0; channel < pass.x.shape[1]; ++channel) {
      plan.add_slopes(upstream_of(pass.upstream, image, channel), sums.of(image, channel));
    }
  }
  sums.add(pieces, run_pieces<TileSums>(pieces, exec, run));
  if (pass.value.empty()) return;
  if (pass.sums) {
    write_sums(pass.value, [&](std::size_t plane) { return plan.sums_of(sums[plane]); });
    return;
  }
  write_values(pass.value, [&](std::size_t group) { return plan.value(sums[group]); });
}

}  // namespace similis
