// SPDX-License-Identifier: Apache-2.0
// Which tile a block of the march takes, and into how many chunks planes are cut.
#pragma once

#include <algorithm>

#include "src/lncc/cuda/sliding_window.h"

namespace similis::lncc_internal {

template <class T> T pieces(T extent, T length) { return (extent + length - 1) / length; }

/// What one kernel has to do: `lanes` places of an axis, of which a tile sees `halo` more, `eights`
/// of another, planes, and volumes.
struct Work {
  int across, halo, along, planes, volumes;
  double lines;  ///< more than its eights that a tile waits for
  double begin;  ///< what a chunk's first plane costs more than any other
};

constexpr std::int64_t kReserved = 1024;  // bytes of a block that the driver takes

/// What a multiprocessor holds of a kernel.
struct Room {
  int multiprocessors, threads;
  std::int64_t bytes;
};

/// Cuts the planes into as many chunks as fill the device once, twice or three times; what the best
/// of these costs. Each multiprocessor takes block after block, and is the faster the more warps
/// are there to wait for one another: on an H200 a plane takes as long as 16 warps more would.
inline double cut(Tiles& tiles, const Work& work, const Room& room, std::int64_t bytes) {
  constexpr double kWarpsOfLatency = 16;
  const std::int64_t columns = std::int64_t{tiles.count_x} * tiles.count_y * tiles.volumes;
  const std::int64_t fit = std::max<std::int64_t>(
      1, std::min<std::int64_t>(room.threads / tiles.threads(), room.bytes / (bytes + kReserved)));
  const double alone = fit == 1 ? 1.06 : 1;  // none works while the block waits for itself
  const double rim = 1 + work.lines / (tiles.threads_along * kOutputs);
  double least = 0;
  for (int times = 1; times <= 3; ++times) {
    const std::int64_t chunks =
        std::clamp<std::int64_t>(times * fit * room.multiprocessors / columns, 1, work.planes);
    const int length = pieces(work.planes, static_cast<int>(chunks));
    const std::int64_t turns =
        pieces<std::int64_t>(columns * pieces(work.planes, length), room.multiprocessors);
    const auto warps = static_cast<double>(std::min(turns, fit) * tiles.threads()) / 32;
    const double cost = static_cast<double>(turns * tiles.threads()) * (length + work.begin) *
                        (1 + kWarpsOfLatency / warps) * rim * alone;
    if (least > 0 && cost >= least) continue;
    least = cost;
    tiles.chunk_planes = length;
    tiles.chunks = pieces(work.planes, length);
  }
  return least;
}

/// The tiles and chunks that cost the least; lanes == 0 if no tile fits.
template <class Bytes> Tiles best_tiles(const Work& work, const Room& room, const Bytes& bytes_of) {
  Tiles best;
  double least = 0;
  for (const int threads : {384, 320, 192, 160, 128, 96}) {
    if (threads > room.threads) continue;
    for (int along = 1; threads / along > work.halo && threads / along >= 32; ++along) {
      const int across = threads / along;
      if (threads % along != 0 || across % 16 != 0) continue;
      Tiles tiles;
      tiles.threads_across = across;
      tiles.threads_along = along;
      tiles.count_x = pieces(work.across, across - work.halo);
      tiles.count_y = pieces(work.along, along * kOutputs);
      tiles.volumes = work.volumes;
      const std::int64_t bytes = bytes_of(tiles);
      if (bytes > room.bytes) continue;
      const double cost = cut(tiles, work, room, bytes);
      if (best.threads_across != 0 && cost >= least) continue;
      least = cost;
      best = tiles;
    }
  }
  return best;
}

}  // namespace similis::lncc_internal
