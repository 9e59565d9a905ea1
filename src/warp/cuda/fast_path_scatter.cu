// SPDX-License-Identifier: Apache-2.0
// The fast path's gradient to the image.
//
//   u ─> indices of a block ─> the box of the image that its cells touch
//   upstream ─> the largest of every 4 voxels; cells ─> how many share one, at most
//   weights · upstream ─> integers added in the box, in shared memory ─> red.add, 16 bytes at once
//
// Neighbours touch the same voxels: a block of 2048 with 16,384 corners has a box of about 6,000.
// Shared memory adds integers by itself, where a float needs a loop of load, add and compare. No
// sum overflows, and small gradients stay right beside large ones: see Words. Voxels that do not
// fit, in place or in size, are added to the image corner by corner.
#include "src/warp/cuda/fast_path_scatter.cuh"

namespace similis::warp_internal {
namespace {

// Returns the voxels that are left, a bit each.
template <class L, class E>
__device__ __forceinline__ unsigned add_by_box(const FastPass& p, const FastColumn<L>& column,
    const Box<L>& box, const float (&u)[kDepth][L::rank], const E* upstream,
    const int (&largest)[kGroups], Agreed* agreed, int4* kept, float* sums) {
  int* words = reinterpret_cast<int*>(kept);
  unsigned left = column.mine(column.z, kDepth);
  clear(kept, box.words);
  FastCell<L> cells[kDepth];
  unsigned outside = 0;
  const unsigned inside = find_cells_in_box<L>(p, column, box, u, cells, &outside) & left;
  left &= ~outside;
  __syncthreads();
  count_cells(cells, inside, words, agreed);
  const int headroom = 32 - __clz(-8 * agreed->most_in_cell - 1);
#pragma unroll 1
  for (int round = 0; round < kRounds; ++round) {
    const Words unit{-agreed->largest[round] >> 23, headroom};
    if (unit.exponent < kLeastExponent) break;
    unsigned which = 0;
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      if (unit.suit(largest[i])) which |= ((1u << kGroup) - 1) << i * kGroup;
    }
    which &= inside & left;
    left &= ~which;
    scatter_to_box<L, E>(p, column, box, cells, which, unit.of_1(), upstream, words);
    agree_on_largest(largest, inside & left, &agreed->largest[round + 1]);
    __syncthreads();
    flush<L>(p, box, kept, unit.inverse(), sums);
    if (agreed->largest[round + 1] == 0) break;
    __syncthreads();
    clear(kept, box.words);
    __syncthreads();
  }
  return left;
}

template <class L, class E>
__device__ __forceinline__ void scatter(
    const FastPass& p, FastColumn<L>& column, Agreed& agreed, int4* kept) {
  const E* upstream = static_cast<const E*>(p.upstream) + column.c * p.upstream_channel +
                      opaque(column.offset(p.upstream_strides, column.z));
  float* sums = p.sums + column.n * p.sums_strides.image + column.c * p.sums_channel;
  float u[kDepth][L::rank];
  load_field<L>(p, column, column.z, opaque(field_at<L>(p, column, column.z)), u);
  int largest[kGroups];
  find_largest<L, E>(p, column, upstream, largest);
  __syncthreads();
  unsigned left = column.mine(column.z, kDepth);
  agree_on_largest(largest, left, &agreed.largest[0]);
  find_range<L>(p, column, u, &agreed);
  __syncthreads();
  const Box<L> box = make_box<L>(p, agreed);
  if (box.is_kept && agreed.largest[0] != 0) {
    for (double& base : column.base) base = recomputed(base);
    for (auto& vector : u) {
      for (float& component : vector) component = recomputed(component);
    }
    left = add_by_box<L, E>(p, column, box, u, upstream, largest, &agreed, kept, sums);
  }
#pragma unroll
  for (int i = 0; i < kGroups; ++i) {
    if (largest[i] == 0) left &= ~(((1u << kGroup) - 1) << i * kGroup);
  }
  const std::int64_t of_channel = column.c * p.upstream_channel;
  for_each_at_border<L>(
      p, column, left, [&](const FastColumn<L>& of, int z, const BorderCell<L>& cell) {
        if (cell.corners == 0) return;
        const E* at = static_cast<const E*>(p.upstream) + of_channel;
        add_to_image<L, E>(p, cell, at + of.offset(p.upstream_strides, z), sums);
      });
}

template <class L>
__global__ __launch_bounds__(kThreads, kLeastBlocks<L>) void fast_scatter_kernel(
    const SIMILIS_GRID_CONSTANT FastPass p) {
  SIMILIS_DYNAMIC_SHARED(int4, kept, 16);
  __shared__ Agreed agreed;
  FastColumn<L> column(p);
  start(&agreed);
  with_element_type<L>(p, [&]<class E>(E) { scatter<L, E>(p, column, agreed, kept); });
}

template <class L> FastKernel kernel_of() { return {fast_scatter_kernel<L>, kDepth, kBoxBytes<L>}; }

}  // namespace

FastKernel fast_scatter(FastLayout layout, bool is_half, bool is_padded) {
  switch (layout) {
    case FastLayout::volume:
      if (is_half) {
        return is_padded ? kernel_of<Half<Volume>>() : kernel_of<Masking<Unpadded<Half<Volume>>>>();
      }
      return is_padded ? kernel_of<Folding<Volume>>() : kernel_of<Masking<Unpadded<Volume>>>();
    case FastLayout::vectors: return kernel_of<Vectors>();
    case FastLayout::picture: break;
  }
  return is_half ? kernel_of<Half<Picture>>() : kernel_of<Folding<Picture>>();
}

}  // namespace similis::warp_internal
