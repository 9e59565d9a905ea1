// SPDX-License-Identifier: Apache-2.0
// The walk over the pixels of a pass, in the form that kernels take.
#pragma once

#include <cstdint>

#include "src/core/pixel_pass.h"
#include "src/gpu/cuda/vendor.h"

namespace similis::pixel_error_internal {

/// a / b, neither negative: a division of 64 bits takes several times one of 32.
__device__ __forceinline__ std::int64_t divided(std::int64_t a, std::int64_t b) {
  if ((a | b) >> 32 != 0) return a / b;
  return static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b);
}

/// A PixelWalk whose axes are in an array.
struct Walk {
  struct Axis {
    std::int64_t extent, x, y, x_gradient, y_gradient, mask;
  };
  Axis axes[kMaxRank + 1];
  int rank, kept_axes;
  std::int64_t results, pixels;  // pixels: of each result

  explicit Walk(const PixelWalk& walk)
      : rank(walk.rank()),
        kept_axes(walk.kept_axes()),
        results(walk.results()),
        pixels(walk.lines() * walk.line().extent) {
    for (int i = 0; i < rank; ++i) {
      const PixelWalk::Axis& axis = walk.axis(i);
      axes[i] = {axis.extent, axis.stride.x, axis.stride.y, axis.stride.x_gradient,
          axis.stride.y_gradient, axis.stride.mask};
    }
  }

  /// Leaves out the axes of a result's pixels along which the mask repeats itself, but for the last
  /// one, and returns how often.
  double leave_out_repeats() {
    std::int64_t repeats = 1;
    for (int i = kept_axes; i < rank - 1; ++i) {
      if (axes[i].mask != 0) continue;
      repeats *= axes[i].extent;
      axes[i].extent = 1;
    }
    pixels /= repeats;
    return static_cast<double>(repeats);
  }

  /// Moves `at` by the index-th place along the axes from `first` to `last`. The index that is left
  /// along the outermost axis needs no division: if all pixels lie in one line, nothing is divided.
  __device__ void move(Axis& at, int first, int last, std::int64_t index) const {
    for (int i = last; i >= first; --i) {
      const Axis& axis = axes[i];
      const std::int64_t outer = i > first ? divided(index, axis.extent) : 0;
      const std::int64_t inner = index - outer * axis.extent;
      at.x += inner * axis.x;
      at.y += inner * axis.y;
      at.x_gradient += inner * axis.x_gradient;
      at.y_gradient += inner * axis.y_gradient;
      at.mask += inner * axis.mask;
      index = outer;
    }
  }
};

}  // namespace similis::pixel_error_internal
