// SPDX-License-Identifier: Apache-2.0
// The division of a grid among blocks that march along z.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/gpu/cuda/vendor.h"
#include "src/registration/cuda/fused.h"

namespace similis::registration_internal::cuda {
namespace {

/// The part of a plane that a block takes, and its threads.
struct TileShape {
  int columns = kColumns, rows = kRows, threads = kTile;
};

struct Tiles {
  int x = 1, y = 1, z = 1;
  int columns = kColumns, rows = kRows, depth = 1;  // of a block

  Tiles(const int (&size)[3], int planes, const TileShape& shape = {})
      : x((size[0] + shape.columns - 1) / shape.columns),
        y((size[1] + shape.rows - 1) / shape.rows),
        z((size[2] + planes - 1) / planes),
        columns(shape.columns),
        rows(shape.rows),
        depth(planes) {}
  std::int64_t count() const { return std::int64_t{x} * y * z; }
};

constexpr int kLeastDepth = 4;

// The depth with which the device ends first: blocks that do not run at once wait for others, and
// each block takes `rim` planes more than its own.
template <class... Parameters>
Tiles best_tiles(const int (&size)[3], int rim, Device device, void (*kernel)(Parameters...),
    const TileShape& shape = {}, std::size_t shared_bytes = 0) {
  const std::int64_t at_once =
      std::int64_t{gpu::limits(device).multiprocessors} *
      std::max(gpu::blocks_per_multiprocessor(kernel, shape.threads, shared_bytes), 1);
  Tiles best(size, size[2], shape);
  std::int64_t least = -1;
  for (int depth = std::min(kLeastDepth, size[2]); depth <= size[2]; ++depth) {
    const Tiles tiles(size, depth, shape);
    const std::int64_t planes = (tiles.count() + at_once - 1) / at_once * (depth + rim);
    if (least >= 0 && planes >= least) continue;
    least = planes;
    best = tiles;
  }
  return best;
}

// A thread's column, and the planes of its block.
struct Place {
  int x0, y0, z0, z1, x, y;
  bool is_mine;

  template <class T> __device__ Place(const Volumes<T>& p, const Tiles& tiles) {
    const int block = static_cast<int>(blockIdx.x), t = static_cast<int>(threadIdx.x);
    x0 = block % tiles.x * tiles.columns;
    y0 = block / tiles.x % tiles.y * tiles.rows;
    z0 = block / tiles.x / tiles.y * tiles.depth;
    z1 = min(z0 + tiles.depth, p.size[2]);
    x = x0 + t % kColumns;
    y = y0 + t / kColumns;
    is_mine = x < p.size[0] && y < p.size[1];
  }
};

}  // namespace
}  // namespace similis::registration_internal::cuda
