// SPDX-License-Identifier: Apache-2.0
// The fast path's gradient to volumes of several channels: as in fast_path_scatter.cu, but a block
// finds its cells, their box and how many share one once, and adds kTogether channels between two
// barriers, each in a box of its own. Pictures gain nothing: fewer blocks wait together.
#include "src/warp/cuda/fast_path_scatter.cuh"

namespace similis::warp_internal {
namespace {

// Channels whose boxes are filled at once, where shared memory has room for them: a thread keeps
// the upstream gradients of all its voxels.
constexpr int kTogether = 2;

// The largest |g| of each channel and round, as bits and negative. Three take turns: while one is
// in use and threads that are late read the one before, the one after is cleared.
using Largest = int[3][kTogether][kRounds + 1];
constexpr int kLargest = kTogether * (kRounds + 1);

// The cells of a block, and where channels are added.
template <class L> struct Cells {
  Box<L> box;
  FastCell<L> of[kDepth];
  unsigned inside = 0;  // voxels that the box takes, a bit each
  int headroom = 0;
  int together = 1;  // number of boxes
};

// Does what scatter_to_box() in fast_path_scatter.cuh does, with upstream gradients that are there.
template <class L>
__device__ __forceinline__ void scatter_to_box(const Cells<L>& cells, unsigned which,
    float words_of_1, const float (&upstream)[kDepth], int* words) {
#pragma unroll
  for (int d = 0; d < kDepth; ++d) {
    const bool is_one = which >> d & 1u;
    const float g[1] = {is_one ? upstream[d] * words_of_1 : 0.0f};
    add_to_box<L>(
        cells.box, cells.of[d].fraction, g, words + (is_one ? cells.of[d].offset : lane()));
  }
}

// Adds the boxes of up to kTogether channels from one on, and returns the voxels that are left, 8
// bits for each channel.
template <class L, class E>
__device__ __forceinline__ unsigned add_channels(const FastPass& p, const FastColumn<L>& column,
    const Cells<L>& cells, int count, const E* upstream, int (&agreed)[kTogether][kRounds + 1],
    int* cleared, int4* kept, float* sums) {
  int* words = reinterpret_cast<int*>(kept);
  float g[kTogether][kDepth];
#pragma unroll
  for (int k = 0; k < kTogether; ++k) {
    const E* at = upstream + (k < count ? k : 0) * p.upstream_channel;
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
      g[k][d] = load_float(at);
      if (column.z + d + 1 < column.end) at += p.upstream_strides.z;
    }
  }
  int largest[kTogether][kGroups];
#pragma unroll
  for (int k = 0; k < kTogether; ++k) {
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
      const int bits = __float_as_int(g[k][d]) & INT_MAX;
      largest[k][d / kGroup] = d % kGroup == 0 ? bits : max(largest[k][d / kGroup], bits);
    }
    if (k < count) agree_on_largest(largest[k], cells.inside, &agreed[k][0]);
  }
  if (threadIdx.x < kLargest) cleared[threadIdx.x] = 0;
  __syncthreads();
  unsigned left = 0;
#pragma unroll
  for (int k = 0; k < kTogether; ++k) {
    if (k < count) left |= cells.inside << 8 * k;
  }
#pragma unroll 1
  for (int round = 0; round < kRounds; ++round) {
    unsigned added = 0;  // channels, a bit each
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
      if (k >= count) break;
      const Words unit{-agreed[k][round] >> 23, cells.headroom};
      if (unit.exponent < kLeastExponent) continue;
      added |= 1u << k;
      unsigned which = 0;
#pragma unroll
      for (int i = 0; i < kGroups; ++i) {
        if (unit.suit(largest[k][i])) which |= ((1u << kGroup) - 1) << i * kGroup;
      }
      which &= left >> 8 * k;
      left &= ~(which << 8 * k);
      scatter_to_box<L>(cells, which, unit.of_1(), g[k], words + k * cells.box.words);
      agree_on_largest(largest[k], left >> 8 * k & 0xff, &agreed[k][round + 1]);
    }
    if (added == 0) break;
    __syncthreads();
    bool has_more = false;
#pragma unroll 1
    for (int k = 0; k < count; ++k) {
      if ((added >> k & 1u) == 0) continue;
      const Words unit{-agreed[k][round] >> 23, cells.headroom};
      flush<L, true>(p, cells.box, kept + k * (cells.box.words / 4), unit.inverse(),
          sums + k * p.sums_channel);
      has_more |= agreed[k][round + 1] != 0;
    }
    if (!has_more) break;
    __syncthreads();
  }
#pragma unroll
  for (int k = 0; k < kTogether; ++k) {
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      if (k < count && largest[k][i] == 0) left &= ~(((1u << kGroup) - 1) << (8 * k + i * kGroup));
    }
  }
  return left;
}

// Adds voxels of the column, a bit each, to channels from `first` to `end`, corner by corner.
template <class L, class E>
__device__ __forceinline__ void add_each(
    const FastPass& p, const FastColumn<L>& of_lane, unsigned which, int first, int end) {
  if (gpu::first_lane(which != 0) == gpu::kSubgroup) return;
  const auto add = [&](const FastColumn<L>& column, int z, const BorderCell<L>& cell) {
    if (cell.corners == 0) return;
    const E* upstream = static_cast<const E*>(p.upstream) + column.offset(p.upstream_strides, z);
    float* sums = p.sums + column.n * p.sums_strides.image;
    for (int c = first; c < end; ++c) {
      add_to_image<L, E>(p, cell, upstream + c * p.upstream_channel, sums + c * p.sums_channel);
    }
  };
  for_each_at_border<L>(p, of_lane, which, add);
}

template <class L, class E>
__device__ __forceinline__ void scatter_channels(
    const FastPass& p, FastColumn<L>& column, Agreed& agreed, Largest& largest, int4* kept) {
  const int first = first_channel(column, p), end = end_channel(column, p);
  float u[kDepth][L::rank];
  load_field<L>(p, column, column.z, opaque(field_at<L>(p, column, column.z)), u);
  __syncthreads();
  find_range<L>(p, column, u, &agreed);
  __syncthreads();
  const unsigned mine = column.mine(column.z, kDepth);
  unsigned outside = 0;
  Cells<L> cells{.box = make_box<L>(p, agreed)};
  if (cells.box.is_kept) {
    for (double& base : column.base) base = recomputed(base);
    for (auto& vector : u) {
      for (float& component : vector) component = recomputed(component);
    }
    cells.together = min(kTogether, p.box_floats / cells.box.words);
    clear(kept, cells.together * cells.box.words);
    cells.inside = find_cells_in_box<L>(p, column, cells.box, u, cells.of, &outside) & mine;
    __syncthreads();
    count_cells(cells.of, cells.inside, reinterpret_cast<int*>(kept), &agreed);
    cells.headroom = 32 - __clz(-8 * agreed.most_in_cell - 1);
    const E* upstream =
        static_cast<const E*>(p.upstream) + opaque(column.offset(p.upstream_strides, column.z));
    float* sums = p.sums + column.n * p.sums_strides.image;
    int turn = 0;
#pragma unroll 1
    for (int c = first; c < end; c += cells.together) {
      const int next = turn == 2 ? 0 : turn + 1, count = min(cells.together, end - c);
      const unsigned left =
          add_channels<L, E>(p, column, cells, count, upstream + c * p.upstream_channel,
              largest[turn], &largest[next][0][0], kept, sums + c * p.sums_channel);
      turn = next;
      if (gpu::first_lane(left != 0) == gpu::kSubgroup) continue;
#pragma unroll 1
      for (int k = 0; k < count; ++k) {
        add_each<L, E>(p, column, left >> 8 * k & 0xff, c + k, c + k + 1);
      }
    }
  }
  add_each<L, E>(p, column, mine & ~(cells.inside | outside), first, end);
}

template <class L>
__global__ __launch_bounds__(kThreads, kLeastBlocks<L>) void fast_scatter_channels_kernel(
    const SIMILIS_GRID_CONSTANT FastPass p) {
  SIMILIS_DYNAMIC_SHARED(int4, kept, 16);
  __shared__ Agreed agreed;
  __shared__ Largest largest;
  FastColumn<L> column(p);
  start(&agreed);
  if (threadIdx.x < kLargest) (&largest[0][0][0])[threadIdx.x] = 0;
  with_element_type<L>(
      p, [&]<class E>(E) { scatter_channels<L, E>(p, column, agreed, largest, kept); });
}

template <class L> FastKernel kernel_of() {
  return {fast_scatter_channels_kernel<L>, kDepth, kBoxBytes<L>};
}

}  // namespace

FastKernel fast_scatter_channels(bool is_half, bool is_padded) {
  if (is_half) {
    return is_padded ? kernel_of<Half<Volume>>() : kernel_of<Masking<Unpadded<Half<Volume>>>>();
  }
  return is_padded ? kernel_of<Folding<Volume>>() : kernel_of<Masking<Unpadded<Volume>>>();
}

}  // namespace similis::warp_internal
