// SPDX-License-Identifier: Apache-2.0
// The rows of a level's planes, as its kernels take them.
#pragma once

#include <cstdint>

#include "src/gpu/cuda/view.h"
#include "src/ms_ssim/ms_ssim.h"

namespace similis::ms_ssim_internal {

constexpr int kThreads = 256;
constexpr int kMaxLevels = 16;

// Rows of an array of planes; blocks take some rows each, in turn.
struct Rows {
  std::int64_t planes, channels, depth, height, width;
  bool has_short_count;  // 32 bits count the rows
  explicit Rows(const Extents& shape)
      : planes(shape[0] * shape[1]),
        channels(shape[1]),
        depth(shape[2]),
        height(shape[3]),
        width(shape[4]),
        has_short_count(count() <= UINT32_MAX) {}
  std::int64_t count() const { return planes * depth * height; }
};
struct Row {
  std::int64_t plane, image, channel, z, y;
  // Divisions of 64 bits took most of the time of a kernel that loads little in each row.
  __device__ Row(const Rows& rows, std::int64_t index) {
    if (rows.has_short_count) {
      place<std::uint32_t>(rows, index);
    } else {
      place<std::int64_t>(rows, index);
    }
  }
  __device__ std::int64_t in(const gpu::View& view) const {
    return view.plane(image, channel) + view.at(z, y, 0);
  }

 private:
  template <class Count> __device__ void place(const Rows& rows, std::int64_t index) {
    const auto i = static_cast<Count>(index), height = static_cast<Count>(rows.height),
               depth = static_cast<Count>(rows.depth), channels = static_cast<Count>(rows.channels);
    const Count slice = i / height, of_slice = slice / depth, of_plane = of_slice / channels;
    y = i - slice * height;
    z = slice - of_slice * depth;
    plane = of_slice;
    image = of_plane;
    channel = of_slice - of_plane * channels;
  }
};

struct Halvings {
  Halving z, y, x;
};
// Returns the number of threads that share a row of so many items, a power of two: most of them
// then have an item. The others of a block take other rows.
inline int threads_across(std::int64_t items) {
  int threads = 1;
  while (threads < items && threads < kThreads) threads *= 2;
  return threads;
}

inline Halvings halvings_of(const std::array<Halving, 3>& halving) {
  return {halving[0], halving[1], halving[2]};
}

}  // namespace similis::ms_ssim_internal
