// SPDX-License-Identifier: Apache-2.0
// Chooses the tile of a block of the fast path's kernels, and the length of chunks along z.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "src/lncc/cuda/fast_path.h"

namespace similis::lncc_internal {

template <class T> T pieces(T extent, T length) { return (extent + length - 1) / length; }

/// The work of one kernel: `across` places along one axis, of which a tile sees `halo` more,
/// `along` places along another, planes, and volumes.
struct Work {
  int across, halo, along, planes, volumes;
  double lines;  ///< lines beyond its outputs that a tile waits for
  bool has_whole_runs;
  int threads_across;  ///< of each tile; 0: any
  double begin;        ///< the cost of a chunk's first plane above that of any other, in planes
  bool fills_rounds = false;  ///< chunks are cut again so that no round of blocks is partly idle
  bool is_wide = false;  ///< the planes have so many pixels that the costs of wide planes apply

  bool operator==(const Work&) const = default;
};

constexpr std::int64_t kReserved = 1024;  // bytes of a block's shared memory that the driver takes

/// The room for a kernel on a multiprocessor.
struct Room {
  int multiprocessors, threads;
  std::int64_t bytes;

  bool operator==(const Room&) const = default;
};

/// Returns what a plane costs a multiprocessor that runs so many blocks at once, above what it
/// costs one that runs many, as measured on an H200: others work while a block waits at its
/// barriers.
inline double waiting(const Work& work, std::int64_t blocks) {
  if (work.is_wide) return blocks == 1 ? 1.06 : 1;
  return blocks == 1 ? 1.15 : blocks == 2 ? 1.04 : 1;
}

/// Cuts the planes into as many chunks as fill the device once, twice or three times, and returns
/// the cost of the best cut; tiles.chunk_planes is their length. Each multiprocessor takes its
/// blocks in rounds, and is the faster the more warps it has to hide latency: on an H200 a plane
/// takes as long in each round as 16 warps more would. Tiles with many threads along an axis were a
/// little slower there, by 1 % for each. These costs were found with volumes up to 384×320×448;
/// wide planes keep the former costs, by which 512×1024×1024 took 16.6 ms instead of 20.3.
inline double cut(Tiles& tiles, const Work& work, const Room& room, std::int64_t bytes) {
  constexpr double kWarpsOfLatency = 16;
  const std::int64_t columns = std::int64_t{tiles.count_x} * tiles.count_y * tiles.volumes;
  const std::int64_t fit = std::max<std::int64_t>(
      1, std::min<std::int64_t>(room.threads / tiles.threads(), room.bytes / (bytes + kReserved)));
  const double latency = kWarpsOfLatency * 32 / tiles.threads();  // in blocks
  const double rim = (1 + work.lines / (tiles.threads_along * kOutputs)) *
                     (1 + (work.is_wide ? 0 : 0.01) * (tiles.threads_along - 1));
  double least = 0;
  for (int times = 1; times <= 3; ++times) {
    const std::int64_t chunks =
        std::clamp<std::int64_t>(times * fit * room.multiprocessors / columns, 1, work.planes);
    const int length = pieces(work.planes, static_cast<int>(chunks));
    const std::int64_t turns =
        pieces<std::int64_t>(columns * pieces(work.planes, length), room.multiprocessors);
    const double rounds =
        work.fills_rounds || work.is_wide
            ? static_cast<double>(turns) / static_cast<double>(std::min(turns, fit))
            : static_cast<double>(pieces(turns, fit));
    const double cost = tiles.threads() * (length + work.begin) *
                        (static_cast<double>(turns) + latency * rounds) * rim * waiting(work, fit);
    if (least > 0 && cost >= least) continue;
    least = cost;
    tiles.chunk_planes = length;
  }
  return least;
}

/// Returns the outputs of a tile along the axis with the halo.
inline int owned(const Work& work, int across) {
  return work.has_whole_runs ? whole_runs(across, work.halo) : across - work.halo;
}

/// Returns the tiles and chunks that cost the least; threads_across is 0 if no tile fits.
template <class Bytes> Tiles best_tiles(const Work& work, const Room& room, const Bytes& bytes_of) {
  Tiles best;
  double least = 0;
  for (const int threads : {384, 320, 192, 160, 128, 96}) {
    if (threads > room.threads) continue;
    for (int along = 1; owned(work, threads / along) > 0 && threads / along >= 32; ++along) {
      const int across = threads / along;
      if (threads % along != 0 || across % 16 != 0) continue;
      if (work.threads_across != 0 && work.threads_across != across) continue;
      Tiles tiles;
      tiles.threads_across = across;
      tiles.threads_along = along;
      tiles.count_x = pieces(work.across, owned(work, across));
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

/// All that a choice of tiles depends on.
struct TileChoice {
  Work work;
  Room room;
  std::array<int, 3> radius;
  Form form;
  bool of_gradient;

  bool operator==(const TileChoice&) const = default;
};

/// Returns best_tiles(), which a thread remembers for its last choices: a call makes some ten, of 5
/// µs each, and the next call mostly the same ones.
template <class Bytes> Tiles remembered_tiles(const TileChoice& choice, const Bytes& bytes_of) {
  constexpr std::size_t kMost = 32;
  thread_local std::vector<std::pair<TileChoice, Tiles>> known;
  thread_local std::size_t oldest = 0;
  for (const auto& [made, tiles] : known) {
    if (made == choice) return tiles;
  }
  const Tiles tiles = best_tiles(choice.work, choice.room, bytes_of);
  if (known.size() < kMost) {
    known.emplace_back(choice, tiles);
  } else {
    known[oldest] = {choice, tiles};
    oldest = (oldest + 1) % kMost;
  }
  return tiles;
}

/// Returns the tiles of the filters, one output a thread.
constexpr int kFilterColumns = 32;
inline Tiles filter_tiles(const Box& box, int volumes, int radius, int threads, const Room& room) {
  Tiles tiles;
  tiles.threads_across = kFilterColumns;
  tiles.threads_along = threads / kFilterColumns;
  tiles.count_x = pieces(box.columns.length(), kFilterColumns);
  tiles.count_y = pieces(box.rows.length(), tiles.threads_along);
  tiles.volumes = volumes;
  cut(tiles,
      {.across = box.columns.length(),
          .halo = 0,
          .along = box.rows.length(),
          .planes = box.planes.length(),
          .volumes = volumes,
          .lines = 0,
          .has_whole_runs = false,
          .threads_across = 0,
          .begin = 2.0 * radius,
          .fills_rounds = true},
      room, 0);
  return tiles;
}

}  // namespace similis::lncc_internal
