// SPDX-License-Identifier: Apache-2.0
// How the march is laid out: what a block holds of a plane, and which tiles it takes. The kernel is
// in cuda_march_kernel.cuh, compiled for each number of fields by itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/lncc/cuda_plan.h"

namespace similis::lncc_internal {

constexpr int kMarchThreads = 512;
constexpr int kTileX = 32, kTileY = 16;  // a column of the tile a thread
static_assert(kTileX * kTileY == kMarchThreads);
constexpr int kProducts = 5;
constexpr int kMostColumns = 4;  // of pixels with the halo, a thread: for windows of up to 11

/// Rows of odd length: threads that walk along neighbouring rows then use different banks.
SIMILIS_HOST_DEVICE constexpr int odd(int length) { return length | 1; }

/// How `rows` rows of `columns` sums are dealt out to the block's threads, one piece of a row each
/// if that is possible.
struct Pieces {
  int count, length;

  SIMILIS_HOST_DEVICE constexpr Pieces(int rows, int columns)
      : count(rows < kMarchThreads ? kMarchThreads / rows : 1),
        length((columns + count - 1) / count) {}
  SIMILIS_HOST_DEVICE constexpr int total() const { return count * length; }
};

/// What a block holds of one plane, along x and y: pixels, the centres among them, and how far the
/// centres reach around the tile. Rows have room for whole pieces.
struct Layout {
  int window_x, window_y, fields;

  SIMILIS_HOST_DEVICE constexpr int halo_x() const { return fields > 0 ? window_x / 2 : 0; }
  SIMILIS_HOST_DEVICE constexpr int halo_y() const { return fields > 0 ? window_y / 2 : 0; }
  SIMILIS_HOST_DEVICE constexpr int centres_x() const { return kTileX + 2 * halo_x(); }
  SIMILIS_HOST_DEVICE constexpr int centres_y() const { return kTileY + 2 * halo_y(); }
  SIMILIS_HOST_DEVICE constexpr int pixels_x() const { return centres_x() + window_x - 1; }
  SIMILIS_HOST_DEVICE constexpr int pixels_y() const { return centres_y() + window_y - 1; }
  SIMILIS_HOST_DEVICE constexpr int product_rows() const { return kProducts * pixels_y(); }
  SIMILIS_HOST_DEVICE constexpr int field_rows() const { return fields * centres_y(); }
  SIMILIS_HOST_DEVICE constexpr Pieces across() const { return {product_rows(), centres_x()}; }
  SIMILIS_HOST_DEVICE constexpr Pieces fields_across() const {
    return {fields > 0 ? field_rows() : 1, kTileX};
  }
  SIMILIS_HOST_DEVICE constexpr int pixel_row() const {
    return odd(across().total() + window_x - 1);
  }
  SIMILIS_HOST_DEVICE constexpr int centre_row() const { return odd(across().total()); }
  SIMILIS_HOST_DEVICE constexpr int field_row() const {
    return odd(fields_across().total() + window_x - 1);
  }
  SIMILIS_HOST_DEVICE constexpr int tile_row() const { return odd(fields_across().total()); }
  SIMILIS_HOST_DEVICE constexpr int product_plane() const { return pixels_y() * pixel_row(); }
  SIMILIS_HOST_DEVICE constexpr int across_plane() const { return pixels_y() * centre_row(); }
  SIMILIS_HOST_DEVICE constexpr int field_plane() const { return centres_y() * field_row(); }
  SIMILIS_HOST_DEVICE constexpr int tile_plane() const { return centres_y() * tile_row(); }
  /// Doubles in shared memory, but for the ring. Fields lie where products were, and their sums
  /// across where those of products were.
  SIMILIS_HOST_DEVICE constexpr int doubles() const {
    const int first = kProducts * product_plane(), second = kProducts * across_plane();
    const int of_fields = fields * field_plane(), of_tile = fields * tile_plane();
    return (first > of_fields ? first : of_fields) + (second > of_tile ? second : of_tile);
  }
  SIMILIS_HOST_DEVICE constexpr int across_begin() const {
    const int first = kProducts * product_plane(), of_fields = fields * field_plane();
    return first > of_fields ? first : of_fields;
  }
};

/// Where the tiles lie, and how the work is dealt out: an item is a tile of some planes along z.
struct March {
  Measure measure;
  int window_z, window_y, window_x;
  int tiles_x, tiles_y, chunks;
  std::int64_t chunk_planes, items;
  double scale;      // 1 / the number of taps
  double* partials;  // [item]; null with a map
  double* rings;     // [block][ring], if not in shared memory

  Layout layout(int fields) const { return {window_x, window_y, fields}; }
};

/// The sums of fields that a block keeps, in doubles.
SIMILIS_HOST_DEVICE constexpr int ring_doubles(int fields, int window_z) {
  return fields * window_z * kMarchThreads;
}

/// Queues the kernel for this many fields, with the workspace that its ring may need.
template <int kFields> void launch_march(const CudaPlan& plan, March march);

}  // namespace similis::lncc_internal
