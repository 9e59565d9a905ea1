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

  Tiles(const Level& level, int planes, const TileShape& shape = {})
      : x((level.size[0] + shape.columns - 1) / shape.columns),
        y((level.size[1] + shape.rows - 1) / shape.rows),
        z((level.size[2] + planes - 1) / planes),
        columns(shape.columns),
        rows(shape.rows),
        depth(planes) {}
  std::int64_t count() const { return std::int64_t{x} * y * z; }
};

constexpr int kLeastDepth = 4;

// The depth with which the device ends first: blocks that do not run at once wait for others, and
// each block takes `rim` planes more than its own.
template <class... Parameters>
Tiles best_tiles(const Level& level, int rim, Device device, void (*kernel)(Parameters...),
    const TileShape& shape = {}, std::size_t shared_bytes = 0) {
  const std::int64_t at_once =
      std::int64_t{gpu::limits(device).multiprocessors} *
      std::max(gpu::blocks_per_multiprocessor(kernel, shape.threads, shared_bytes), 1);
  Tiles best(level, level.size[2], shape);
  std::int64_t least = -1;
  for (int depth = std::min(kLeastDepth, level.size[2]); depth <= level.size[2]; ++depth) {
    const Tiles tiles(level, depth, shape);
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

  __device__ Place(const Level& p, const Tiles& tiles)
      : Place(p, tiles, static_cast<int>(blockIdx.x) % (tiles.x * tiles.y),
            static_cast<int>(blockIdx.x) / (tiles.x * tiles.y) * tiles.depth) {}
  // tile: of a plane.
  __device__ Place(const Level& p, const Tiles& tiles, int tile, int first_z)
      : x0(tile % tiles.x * tiles.columns),
        y0(tile / tiles.x * tiles.rows),
        z0(first_z),
        z1(min(first_z + tiles.depth, p.size[2])) {
    const int t = static_cast<int>(threadIdx.x);
    x = x0 + t % kColumns;
    y = y0 + t / kColumns;
    is_mine = x < p.size[0] && y < p.size[1];
  }
};

// Equal shares of the planes of all tiles, one for each block that the device runs at once. A share
// goes on in the next tile where one ends: blocks of fewer planes would each begin with the planes
// of a rim and end with a sum over their threads.
struct Shares {
  Tiles tiles;  // of the grid's depth
  int planes, of_block;

  template <class... Parameters>
  Shares(const Level& level, Device device, void (*kernel)(Parameters...),
      std::size_t shared_bytes = 0)
      : tiles(level, level.size[2]), planes(static_cast<int>(tiles.count()) * level.size[2]) {
    const int at_once = gpu::limits(device).multiprocessors *
                        std::max(gpu::blocks_per_multiprocessor(kernel, kTile, shared_bytes), 1);
    of_block = std::max((planes + at_once - 1) / at_once, std::min(kLeastDepth, level.size[2]));
  }
  unsigned blocks() const { return static_cast<unsigned>((planes + of_block - 1) / of_block); }
};

// What a block takes of each tile in its share, one after another.
class ShareOfBlock {
 public:
  explicit __device__ ShareOfBlock(const Shares& shares)
      : at_(static_cast<int>(blockIdx.x) * shares.of_block),
        end_(min(at_ + shares.of_block, shares.planes)) {}

  __device__ bool has_next() const { return at_ < end_; }
  __device__ Place next(const Level& p, const Shares& shares) {
    Place place(p, shares.tiles, at_ / p.size[2], at_ % p.size[2]);
    place.z1 = min(place.z1, place.z0 + end_ - at_);
    at_ += place.z1 - place.z0;
    return place;
  }

 private:
  int at_, end_;
};

}  // namespace
}  // namespace similis::registration_internal::cuda
