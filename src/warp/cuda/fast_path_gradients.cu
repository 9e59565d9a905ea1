// SPDX-License-Identifier: Apache-2.0
// The fast path's gradient to the field.
//
//   u of 4 voxels ─> indices in f64 ─> cells ─> 8 loads each ─> slopes · upstream ─> the field's
//   gradient, through shared memory so that stores are whole
#include "src/warp/cuda/fast_path.cuh"

namespace similis::warp_internal {
namespace {

// Adds g times the slopes along x, y, z.
__device__ __forceinline__ void add_slopes(
    const float (&fraction)[3], const Corners& k, float g, float (&sum)[3]) {
  const float fx = fraction[0], fy = fraction[1], fz = fraction[2];
  const float(&v)[8] = k.v;
  const float x0 = mix(fy, v[1] - v[0], v[3] - v[2]);
  const float x1 = mix(fy, v[5] - v[4], v[7] - v[6]);
  const float l0 = mix(fx, v[0], v[1]), l1 = mix(fx, v[2], v[3]);
  const float l2 = mix(fx, v[4], v[5]), l3 = mix(fx, v[6], v[7]);
  sum[0] = fmaf(g, mix(fz, x0, x1), sum[0]);
  sum[1] = fmaf(g, mix(fz, l1 - l0, l3 - l2), sum[1]);
  sum[2] = fmaf(g, mix(fy, l2, l3) - mix(fy, l0, l1), sum[2]);
}

// Stores the gradients at the border, where they are 0 yet, for the voxels of the column in
// `which`, a bit each.
template <int step>
__device__ __forceinline__ void store_at_border(
    const FastPass& p, const FastColumn& column, unsigned which) {
  for_each_with_corners(p, column, step, which, [&](int z, const FastCell& cell) {
    const float* upstream = p.upstream + column.offset(p.upstream_strides, z);
    float sum[3] = {0, 0, 0};
    const int channels = step == 3 ? 1 : p.channels;
    for (int c = 0; c < channels; ++c) {
      const float* plane = p.image + column.n * p.image_strides.image + c * p.image_channel;
      for (int k = 0; k < step; ++k) {
        add_slopes(cell.fraction, load_corners_inside<step>(p, cell, plane + k),
            upstream[c * p.upstream_channel + k], sum);
      }
    }
    float* out = p.field_gradient + column.offset(p.gradient_strides, z);
    for (int a = 0; a < 3; ++a) out[a] = sum[a] * static_cast<float>(column.by_u[a]);
  });
}

// Stores three floats a lane, of voxels behind each other: the warp stores them as neighbours, in
// whole vectors if the address allows it.
struct Triplets {
  float4 of[kBatch][3 * kTileX / 4];

  __device__ __forceinline__ void put(int d, int component, float value) {
    reinterpret_cast<float*>(of[d])[3 * lane() + component] = value;
  }
  /// `row` is the first lane's at z. Lanes beyond the output have none.
  __device__ __forceinline__ void store(
      const FastPass& p, const FastColumn& column, int z, float* row, int stride) const {
    const int floats = floats_of_row(p);
#pragma unroll
    for (int d = 0; d < kBatch; ++d, row += stride) {
      if (z + d >= column.end) break;
      if (floats == 3 * kTileX && reinterpret_cast<std::uintptr_t>(row) % sizeof(float4) == 0) {
        if (4 * lane() < 3 * kTileX) reinterpret_cast<float4*>(row)[lane()] = of[d][lane()];
        continue;
      }
      const auto* staged = reinterpret_cast<const float*>(of[d]);
#pragma unroll 1
      for (int i = lane(); i < floats; i += kTileX) row[i] = staged[i];
    }
  }
};

// Takes one channel at a time, or three side by side.
template <int step>
__device__ __forceinline__ void store_gradients(const FastPass& p, const FastColumn& column, int z,
    const FastCell (&cells)[kBatch], unsigned inside, Triplets& triplets) {
  const unsigned mine = column.mine(z, kBatch);
  const std::int64_t upstream_at = opaque(column.offset(p.upstream_strides, z));
  float sum[kBatch][3] = {};
  const int channels = step == 3 ? 1 : p.channels;
  for (int c = 0; c < channels; ++c) {
    const float* upstream = p.upstream + upstream_at + c * p.upstream_channel;
    const Lines<step> lines(
        p.image + column.n * p.image_strides.image + c * p.image_channel, p.image_strides);
#pragma unroll
    for (int d = 0; d < kBatch; ++d, upstream += p.upstream_strides.z) {
      Corners corners[step];
      float g[step];
#pragma unroll
      for (int k = 0; k < step; ++k) {
        g[k] = mine >> d & 1u ? __ldg(upstream + k) : 0.0f;
        corners[k] = load_corners(lines, cells[d].offset + k);
      }
#pragma unroll
      for (int k = 0; k < step; ++k) add_slopes(cells[d].fraction, corners[k], g[k], sum[d]);
    }
  }
#pragma unroll
  for (int d = 0; d < kBatch; ++d) {
#pragma unroll
    for (int a = 0; a < 3; ++a) {
      const float by_u = sum[d][a] * static_cast<float>(column.by_u[a]);
      triplets.put(d, a, inside >> d & 1u ? by_u : 0.0f);
    }
  }
  gpu::sync_warp();
  triplets.store(p, column, z, p.field_gradient + column.row_offset(p.gradient_strides, z),
      p.gradient_strides.z);
  gpu::sync_warp();
}

template <int step>
__global__ __launch_bounds__(kThreads, 4) void fast_gradients_kernel(
    const SIMILIS_GRID_CONSTANT FastPass p) {
  __shared__ Triplets staged[kTileY];
  const FastColumn column(p);
  const unsigned at_border =
      for_each_batch(p, column, step, [&](int z, const FastCell(&cells)[kBatch], unsigned inside) {
        store_gradients<step>(p, column, z, cells, inside, staged[warp()]);
      });
  store_at_border<step>(p, column, at_border);
}

}  // namespace

FastKernel fast_gradients(int step) {
  return {step == 3 ? fast_gradients_kernel<3> : fast_gradients_kernel<1>, 8, 0};
}

}  // namespace similis::warp_internal
