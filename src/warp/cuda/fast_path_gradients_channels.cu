// SPDX-License-Identifier: Apache-2.0
// The fast path's gradient to the field where an image has few voxels and many channels: the warps
// of a block share voxels, 4 of a column each lane, and take channels each. Their sums meet in
// shared memory, in the order of the warps.
#include "src/warp/cuda/fast_path_gradients.cuh"

namespace similis::warp_internal {
namespace {

template <class L> struct Sums { float of[kTileY][kBatch][kTileX * L::rank]; };

// The part of a warp's channels, which it adds to what it stages.
template <class L, class E>
__device__ __forceinline__ void stage_sums(const FastPass& p, const FastColumn<L>& of_lane,
    int first, int end, float (&staged)[kBatch][kTileX * L::rank]) {
  const auto put = [&](int x, int d, const float(&sum)[L::rank]) {
#pragma unroll
    for (int a = 0; a < L::rank; ++a) staged[d][(x - row_x()) * L::rank + a] = sum[a];
  };
  FastCell<L> cells[kBatch];
  const float* u = opaque(field_at<L>(p, of_lane, of_lane.z));
  Rim<L> rim;
  const unsigned inside = find_cells<L>(p, of_lane, of_lane.z, u, cells, &rim);
  const unsigned mine = of_lane.mine(of_lane.z, kBatch);
  const std::int64_t upstream_at = opaque(of_lane.offset(p.upstream_strides, of_lane.z));
  float sum[kBatch][L::rank] = {};
  for (int c = first; c < end; ++c) {
    const E* upstream = static_cast<const E*>(p.upstream) + upstream_at + c * p.upstream_channel;
    const Lines<L, E> lines(image_of<E>(p, of_lane.n, c), p.image_strides);
#pragma unroll
    for (int d = 0; d < kBatch; ++d, upstream += p.upstream_strides.z) {
      const float g = mine >> d & 1u ? load_float(upstream) : 0.0f;
      add_slopes<L>(
          cells[d].fraction, in_f32(load_corners<L, E>(lines, cells[d].offset)), g, sum[d]);
    }
  }
  apply_slopes<L>(rim, inside, sum);
#pragma unroll
  for (int d = 0; d < kBatch; ++d) put(row_x() + lane(), d, sum[d]);
  for_each_at_border<L>(p, of_lane, mine & ~inside,
      [&](const FastColumn<L>& column, int z, const BorderCell<L>& cell) {
        const E* upstream =
            static_cast<const E*>(p.upstream) + column.offset(p.upstream_strides, z);
        float at_border[L::rank] = {};
        for (int c = first; c < end; ++c) {
          add_slopes<L>(cell.fraction,
              load_corners_inside<L, E>(p, cell, image_of<E>(p, column.n, c)),
              load_float(upstream + c * p.upstream_channel), at_border);
        }
#pragma unroll
        for (int a = 0; a < L::rank; ++a) at_border[a] *= cell.slope[a];
        put(column.x, z - column.z, at_border);
      });
}

template <class L>
__global__ __launch_bounds__(kThreads, 4) void fast_gradients_channels_kernel(
    const SIMILIS_GRID_CONSTANT FastPass p) {
  __shared__ Sums<L> staged;
  const FastColumn<L> column(p, L::rank == 3 ? static_cast<int>(blockIdx.y) : 0, 1, 0);
  const int each = (p.channels + kTileY - 1) / kTileY;
  const int first = min(warp() * each, p.channels), end = min(first + each, p.channels);
  clear_sums<L>(p, column, first, end);
  with_element_type<L>(
      p, [&]<class E>(E) { stage_sums<L, E>(p, column, first, end, staged.of[warp()]); });
  __syncthreads();
  const int floats = L::rank * min(kTileX, p.out[0] - row_x());
  for (int i = static_cast<int>(threadIdx.x); i < kBatch * kTileX * L::rank; i += kThreads) {
    const int d = i / (kTileX * L::rank), at = i - d * (kTileX * L::rank);
    if (at >= floats || column.z + d >= column.end) continue;
    float total = staged.of[0][d][at];
#pragma unroll
    for (int w = 1; w < kTileY; ++w) total += staged.of[w][d][at];
    const double by_u = at % L::rank == 0   ? column.by_u[0]
                        : at % L::rank == 1 ? column.by_u[1]
                                            : column.by_u[L::rank - 1];
    total *= static_cast<float>(by_u);
    float* const to = p.field_gradient + column.row_offset(p.gradient_strides, column.z + d) + at;
    *to = p.keeps ? *to + total : total;
  }
}

template <class L> FastKernel kernel_of(bool is_padded) {
  return {is_padded ? fast_gradients_channels_kernel<Padded<L>>
                    : fast_gradients_channels_kernel<Unpadded<L>>,
      kBatch, 0};
}

}  // namespace

FastKernel fast_gradients_channels(FastLayout layout, bool is_half, bool is_padded) {
  if (layout == FastLayout::picture) {
    return is_half ? kernel_of<Half<Picture>>(is_padded) : kernel_of<Picture>(is_padded);
  }
  return is_half ? kernel_of<Half<Volume>>(is_padded) : kernel_of<Volume>(is_padded);
}

}  // namespace similis::warp_internal
