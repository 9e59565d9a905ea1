// SPDX-License-Identifier: Apache-2.0
// Mode exact: X, Y, B ─> products blurred across by the recursion; a thread filters a row of one
// product, and a warp 32 rows. Rows come and go 32 columns at a time through shared memory, four
// neighbours in an access: a thread reads and writes along its row, and all threads together load
// and store rows. If a channel has five products, the five warps of a block share 32 rows of x and
// y; if it has the two means, each warp has 32 rows of its own, of x or of y.
#pragma once

#include "src/ssimulacra2/cuda/scale.cuh"

namespace similis::ssimulacra2_internal {

constexpr int kAcrossWarps = kProducts, kAcrossThreads = kAcrossWarps * kLanes;
constexpr int kSpan = kBehind + kAhead;  // number of columns between the two that a step reads
constexpr int kQuads = kLanes / 4;       // number of accesses to 32 columns

// A tile of 32 rows of 32 columns. Its pitch puts eight neighbouring accesses in different banks,
// down as across.
using Tile = float4[kLanes][kQuads + 1];
struct AcrossShared {
  Tile in[kAcrossWarps], out[kAcrossWarps];
};

// Returns the number of blocks for all rows of a channel.
inline std::int64_t across_blocks(const Scale& s, int products) {
  const std::int64_t groups = (s.extent.height + kLanes - 1) / kLanes;
  return products == kProducts ? groups : (products * groups + kAcrossWarps - 1) / kAcrossWarps;
}

// Loads tiles of `sides` planes, one 32 columns after the other, with `threads` threads, of which
// this is number `thread`; each takes four neighbours of every so many rows.
template <int sides, int threads> class TileReader {
 public:
  /// `at` is the first row and column in a picture that has `below` rows and `right` columns from
  /// there.
  __device__ TileReader(const float* at, std::int64_t pitch, std::int64_t from_x_to_y, int below,
      int right, int thread)
      : row_(thread / kQuads),
        quad_(thread % kQuads),
        at_(at + row_ * pitch + 4 * quad_),
        step_(rows_at_once * pitch),
        from_x_to_y_(from_x_to_y),
        below_(below - row_),
        right_(right - 4 * quad_) {}

  /// Loads the next tile; pixels outside the picture are 0.
  __device__ __forceinline__ void load() {
#pragma unroll
    for (int turn = 0; turn < turns; ++turn) {
      const bool is_inside = right_ > 0 && turn * rows_at_once < below_;
#pragma unroll
      for (int side = 0; side < sides; ++side) {
        float4& value = values_[side][turn];
        value = make_float4(0, 0, 0, 0);
        const float* at = at_ + turn * step_ + side * from_x_to_y_;
        if (is_inside) value = *reinterpret_cast<const float4*>(at);
      }
    }
    at_ += kLanes;
    right_ -= kLanes;
  }
  /// Stores the loaded tile in shared memory.
  __device__ __forceinline__ void put(Tile* tiles) {
    const int right = right_ + kLanes;
#pragma unroll
    for (int turn = 0; turn < turns; ++turn) {
#pragma unroll
      for (int side = 0; side < sides; ++side) {
        float4 value = values_[side][turn];
        if (right < 4) {  // rows in memory end at a multiple of four
          if (right < 2) value.y = 0;
          if (right < 3) value.z = 0;
          value.w = 0;
        }
        tiles[side][row_ + turn * rows_at_once][quad_] = value;
      }
    }
  }

 private:
  static constexpr int rows_at_once = threads / kQuads, turns = kLanes / rows_at_once;
  int row_, quad_;
  const float* at_;
  std::int64_t step_, from_x_to_y_;
  int below_, right_;
  float4 values_[sides][turns];
};

// The recursion's state in a row, and the samples that the next steps read again.
struct RowState {
  float y1[kSections] = {}, y2[kSections] = {};
  float samples[kSpan] = {};  // the first is sample n - 6
};

// Returns outputs n to n + 3, from samples n + 4 to n + 7.
template <bool is_block>
__device__ __forceinline__ float4 filter_four(
    const Recursion& recursion, const float4& fresh, RowState& row) {
  const float samples[4] = {fresh.x, fresh.y, fresh.z, fresh.w};
  float sums[4], y[kSections][4];
#pragma unroll
  for (int j = 0; j < 4; ++j) sums[j] = row.samples[j] + samples[j];
#pragma unroll
  for (int i = 0; i + 4 < kSpan; ++i) row.samples[i] = row.samples[i + 4];
#pragma unroll
  for (int j = 0; j < 4; ++j) row.samples[kSpan - 4 + j] = samples[j];
#pragma unroll
  for (int k = 0; k < kSections; ++k) {
    const Section& section = recursion.sections[k];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      y[k][j] = is_block ? sums[j] : step_across(section, sums[j], row.y1[k], row.y2[k]);
    }
    if constexpr (is_block) {
      block_across(section, y[k][0], y[k][1], y[k][2], y[k][3], row.y1[k], row.y2[k]);
    }
  }
  const auto sum = [&](int j) { return sum_of_sections(y[0][j], y[1][j], y[2][j]); };
  return make_float4(sum(0), sum(1), sum(2), sum(3));
}

__device__ __forceinline__ float4 multiplied(const float4& a, const float4& b) {
  return make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w);
}

// Computes 32 outputs of a row from n on, of the samples a or a·b. is_inner says that all are in
// blocks.
template <bool is_mean, bool is_inner>
__device__ __forceinline__ void filter_chunk(const Recursion& recursion, const Blocks& blocks,
    int n, const float4* a, const float4* b, float4* out, RowState& row) {
  const auto load = [&](int i) { return is_mean ? a[i] : multiplied(a[i], b[i]); };
  constexpr int kUnrolled = is_inner ? 4 : 1;
  float4 next = load(0);  // before the store above it, which might go to the same place
#pragma unroll kUnrolled
  for (int i = 0; i < kQuads; ++i) {
    const float4 fresh = next;
    next = load((i + 1) % kQuads);
    const bool is_block = is_inner || (n + 4 * i >= blocks.begin && n + 4 * i < blocks.end);
    out[i] = is_block ? filter_four<true>(recursion, fresh, row)
                      : filter_four<false>(recursion, fresh, row);
  }
}

// Stores a warp's tile, of which `below` rows exist. Rows in memory have space up to a multiple of
// 32.
__device__ __forceinline__ void store_tile(
    const Tile& tile, std::int64_t pitch, int below, float* to) {
  constexpr int rows_at_once = kLanes / kQuads;
  const int lane = static_cast<int>(threadIdx.x) % kLanes, quad = lane % kQuads;
  constexpr int at_once = 4;  // loads before stores, which might go to the same place
  float* at = to + lane / kQuads * pitch + 4 * quad;
#pragma unroll
  for (int first = 0; first < kLanes; first += at_once * rows_at_once) {
    float4 values[at_once];
    const int row = first + lane / kQuads;
#pragma unroll
    for (int i = 0; i < at_once; ++i) values[i] = tile[row + i * rows_at_once][quad];
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      if (row + i * rows_at_once < below) *reinterpret_cast<float4*>(at) = values[i];
      at += rows_at_once * pitch;
    }
  }
}

template <int products>
__device__ void filter_across(
    const Scale& s, const Recursion& recursion, const Place& place, AcrossShared& shared) {
  constexpr bool shares = products == kProducts;
  constexpr int sides = shares ? kSides : 1, loaders = shares ? 4 * kLanes : kLanes;
  const int t = static_cast<int>(threadIdx.x), warp = t / kLanes, lane = t % kLanes;
  const std::int64_t task = place.block * kAcrossWarps + warp;
  const int product = static_cast<int>(task % products);
  const std::int64_t first_row = task / products * kLanes;
  if (!shares && first_row >= s.extent.height) return;
  const auto sync = [] {
    if constexpr (shares) {
      __syncthreads();
    } else {
      gpu::sync_warp();
    }
  };
  const auto below = static_cast<int>(s.extent.height - first_row);
  const auto width = static_cast<int>(s.extent.width);
  const float* x = s.x_plane(place.image, place.channel) + first_row * s.pitch;
  if (!shares && product == 1) x += s.from_x_to_y();
  float* to = s.across_plane(place.image, place.channel, product) + first_row * s.pitch;
  // The sides that are the product's factors.
  const int of_a = shares && (product == 1 || product == 3) ? 1 : 0;
  const int of_b = shares && product != 2 ? 1 : 0;
  Tile* in = shares ? shared.in : shared.in + warp;
  const float4 *a = in[of_a][lane], *b = in[of_b][lane];
  float4* out = shared.out[warp][lane];
  const Blocks blocks = blocks_of(s.extent.width);
  RowState row;
  if (lane < below) {  // the steps before n = 0 take the first four samples
    const float* at = x + lane * s.pitch;
    const float4 of_first = *reinterpret_cast<const float4*>(at + of_a * s.from_x_to_y());
    const float4 of_second = *reinterpret_cast<const float4*>(at + of_b * s.from_x_to_y());
    const float4 fresh = product < kMeans ? of_first : multiplied(of_first, of_second);
    filter_four<false>(recursion, fresh, row);
  }
  TileReader<sides, loaders> reader(
      x + kAhead, s.pitch, s.from_x_to_y(), below, width - kAhead, shares ? t : lane);
  const bool loads = !shares || t < loaders;
  if (loads) reader.load();
#pragma unroll 1
  for (int n = 0; n < width; n += kLanes) {
    sync();
    if (loads) reader.put(in);
    sync();
    if (loads) reader.load();
    const bool is_inner = n >= blocks.begin && n + kLanes <= blocks.end;
    switch ((product < kMeans ? 0 : 2) + (is_inner ? 1 : 0)) {
      case 0: filter_chunk<true, false>(recursion, blocks, n, a, b, out, row); break;
      case 1: filter_chunk<true, true>(recursion, blocks, n, a, b, out, row); break;
      case 2: filter_chunk<false, false>(recursion, blocks, n, a, b, out, row); break;
      default: filter_chunk<false, true>(recursion, blocks, n, a, b, out, row); break;
    }
    gpu::sync_warp();
    store_tile(shared.out[warp], s.pitch, below, to + n);
  }
}

// A multiprocessor runs four blocks: as many as its shared memory takes.
__global__ __launch_bounds__(kAcrossThreads, 4) void across_kernel(
    SIMILIS_GRID_CONSTANT const Work work, SIMILIS_GRID_CONSTANT const Recursion recursion) {
  __shared__ AcrossShared shared;
  const Place place(work);
  const Scale& s = work.scales[place.scale];
  if (s.products[place.channel] == kProducts) {
    filter_across<kProducts>(s, recursion, place, shared);
  } else {
    filter_across<kMeans>(s, recursion, place, shared);
  }
}

}  // namespace similis::ssimulacra2_internal
