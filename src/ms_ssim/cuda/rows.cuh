// SPDX-License-Identifier: Apache-2.0
// The rows of a level's planes, as its kernels take them.
#pragma once

#include <cstdint>

#include "src/gpu/cuda/view.h"
#include "src/ms_ssim/ms_ssim.h"

namespace similis::ms_ssim_internal {

constexpr int kThreads = 256;
constexpr int kMaxLevels = 16;

// Rows of an array of planes; blocks take one row each, in turn.
struct Rows {
  std::int64_t planes, channels, depth, height, width;
  explicit Rows(const Extents& shape)
      : planes(shape[0] * shape[1]),
        channels(shape[1]),
        depth(shape[2]),
        height(shape[3]),
        width(shape[4]) {}
  std::int64_t count() const { return planes * depth * height; }
};
struct Row {
  std::int64_t plane, image, channel, z, y;
  __device__ Row(const Rows& rows, std::int64_t index)
      : plane(index / (rows.depth * rows.height)),
        image(plane / rows.channels),
        channel(plane % rows.channels),
        z(index / rows.height % rows.depth),
        y(index % rows.height) {}
  __device__ std::int64_t in(const gpu::View& view) const {
    return view.plane(image, channel) + view.at(z, y, 0);
  }
};

struct Halvings {
  Halving z, y, x;
};
inline Halvings halvings_of(const std::array<Halving, 3>& halving) {
  return {halving[0], halving[1], halving[2]};
}

}  // namespace similis::ms_ssim_internal
