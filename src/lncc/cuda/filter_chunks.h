// SPDX-License-Identifier: Apache-2.0
// Chooses where the filters' kernels cut a volume along z. Chunks of one length leave the device
// partly idle in its last turn of blocks: 224 tiles have 264 places on an H200. Chunks of two
// lengths fill it: every tile has some long chunks and, at its end, a short one. Blocks start in
// the order of their chunks, so that the short ones, one after another, take the places that the
// last long ones leave free.
#pragma once

#include <cstdint>

#include "src/lncc/cuda/fast_path.h"
#include "src/lncc/cuda/tiles.h"

namespace similis::lncc_internal {

/// Returns the chunks of a tile's planes. `begin`: planes that each chunk reads beyond its own;
/// `places`: number of blocks on the device at once; tiles.chunk_planes: the length that suits
/// chunks of one length.
inline Chunks filter_chunks(const Tiles& tiles, const Range& planes, int begin, int places) {
  const int count = planes.length();
  const auto columns = static_cast<std::int64_t>(tiles.count_x) * tiles.count_y;
  const int alike = pieces(count, tiles.chunk_planes);
  // Two lengths pay if they save as much as a plane of thirty, by the planes of a place.
  auto least = static_cast<double>(pieces<std::int64_t>(columns * alike, places)) *
               (tiles.chunk_planes + begin) * 29 / 30;
  Chunks chunks;
  chunks.last_plane = planes.last;
  chunks.segment[chunks.segments++] = {planes.first, tiles.chunk_planes, 0};
  chunks.count = alike;
  if (tiles.volumes > 1) return chunks;  // blocks start in the order of volumes first
  constexpr int kMostLong = 8;
  for (int longs = 1; longs <= kMostLong && longs < count; ++longs) {
    const std::int64_t blocks = columns * longs, turns = pieces<std::int64_t>(blocks, places);
    const std::int64_t idle = turns * places - blocks;  // places of the last turn
    if (idle == 0) continue;
    // A place has time for this many short chunks during one long chunk:
    // shorts · (of_short + begin) ≤ of_long + begin, longs · of_long + of_short = count
    const std::int64_t shorts = pieces(columns, idle);
    const std::int64_t of_short = (count + longs * begin * (1 - shorts)) / (longs * shorts + 1);
    if (of_short < 1) continue;
    const int of_long = pieces(count - static_cast<int>(of_short), longs);
    const auto cost = static_cast<double>(turns) * (of_long + begin);
    if (cost >= least || of_long * longs >= count) continue;
    least = cost;
    chunks.segments = 2;
    chunks.segment[0] = {planes.first, of_long, 0};
    chunks.segment[1] = {planes.first + of_long * longs, count - of_long * longs, longs};
    chunks.count = longs + 1;
  }
  return chunks;
}

}  // namespace similis::lncc_internal
