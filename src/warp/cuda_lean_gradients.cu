// SPDX-License-Identifier: Apache-2.0
// The field's gradient of the common call.
//
//   u of 4 voxels ─> indices in f64 ─> cells ─> 8 loads each ─> slopes · upstream ─> the field's
//   gradient, through shared memory so that stores are whole
#include "src/warp/cuda_lean.cuh"

namespace similis::warp_internal {
namespace {

// Adds g times the slopes along x, y, z.
__device__ __forceinline__ void add_slopes(
    const LeanCell& c, const float (&v)[8], float g, float (&sum)[3]) {
  const float fx = c.fraction[0], fy = c.fraction[1], fz = c.fraction[2];
  const float x0 = mix(fy, v[1] - v[0], v[3] - v[2]);
  const float x1 = mix(fy, v[5] - v[4], v[7] - v[6]);
  const float l0 = mix(fx, v[0], v[1]), l1 = mix(fx, v[2], v[3]);
  const float l2 = mix(fx, v[4], v[5]), l3 = mix(fx, v[6], v[7]);
  sum[0] = fmaf(g, mix(fz, x0, x1), sum[0]);
  sum[1] = fmaf(g, mix(fz, l1 - l0, l3 - l2), sum[1]);
  sum[2] = fmaf(g, mix(fy, l2, l3) - mix(fy, l0, l1), sum[2]);
}

// Stores the gradients at the border, where they are 0 yet. which: voxels of the column, a bit
// each.
template <int step>
__device__ __forceinline__ void store_at_border(
    const LeanPass& p, const LeanColumn& column, unsigned which) {
  for (; which != 0; which &= which - 1) {
    const int z = column.z + __ffs(static_cast<int>(which)) - 1;
    LeanCell cells[1];
    find_cells(p, column, z, p.field + column.offset(p.field_strides, z), step, cells);
    if (corners_inside(p, cells[0]) == 0) continue;
    const float* upstream = p.upstream + column.offset(p.upstream_strides, z);
    float sum[3] = {0, 0, 0};
    const int channels = step == 3 ? 1 : p.channels;
    for (int c = 0; c < channels; ++c) {
      const float* plane = p.image + column.n * p.image_strides.image + c * p.image_channel;
      const Corners<step> corners = load_corners_inside<step>(p, cells[0], plane);
      for (int k = 0; k < step; ++k) {
        add_slopes(cells[0], corners.v[k], upstream[c * p.upstream_channel + k], sum);
      }
    }
    float* out = p.field_gradient + column.offset(p.gradient_strides, z);
    for (int a = 0; a < 3; ++a) out[a] = sum[a] * static_cast<float>(column.by_u[a]);
  }
}

template <int step>
__global__ __launch_bounds__(kThreads, 4) void lean_gradients_kernel(
    const SIMILIS_GRID_CONSTANT LeanPass p) {
  __shared__ Triplets<kBatch> staged[kTileY];
  Triplets<kBatch>& triplets = staged[warp()];
  const LeanColumn column(p);
  const float* u = opaque(p.field + column.offset(p.field_strides, column.z));
  const float* image = p.image + column.n * p.image_strides.image;
  unsigned at_border = 0;
  for (int z = column.z; z < column.end; z += kBatch) {
    LeanCell cells[kBatch];
    const unsigned inside = find_cells(p, column, z, u, step, cells);
    u += kBatch * static_cast<std::int64_t>(p.field_strides.z);
    const unsigned mine = column.mine(z, kBatch);
    at_border |= (mine & ~inside) << (z - column.z);
    const std::int64_t upstream_at = opaque(column.offset(p.upstream_strides, z));
    float sum[kBatch][3] = {};
    const int channels = step == 3 ? 1 : p.channels;
    for (int c = 0; c < channels; ++c) {
      const float* upstream = p.upstream + upstream_at + c * p.upstream_channel;
      const Lines lines(image + c * p.image_channel, p.image_strides);
#pragma unroll
      for (int d = 0; d < kBatch; ++d, upstream += p.upstream_strides.z) {
        const Corners<step> corners = load_corners<step>(lines, cells[d].offset);
#pragma unroll
        for (int k = 0; k < step; ++k) {
          const float g = mine >> d & 1u ? __ldg(upstream + k) : 0.0f;
          add_slopes(cells[d], corners.v[k], g, sum[d]);
        }
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
  store_at_border<step>(p, column, at_border);
}

}  // namespace

LeanKernel lean_gradients(int step) {
  return {step == 3 ? lean_gradients_kernel<3> : lean_gradients_kernel<1>, 8, 0};
}

}  // namespace similis::warp_internal
