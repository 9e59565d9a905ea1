// SPDX-License-Identifier: Apache-2.0
// Values of the common call.
//
//   u of 4 voxels ─> indices in f64 ─> cells ─> 8 loads each ─> values ─> output, three components
//   through shared memory so that stores are whole
#include "src/warp/cuda_lean.cuh"

namespace similis::warp_internal {
namespace {

__device__ __forceinline__ float value_of(const LeanCell& c, const float (&v)[8]) {
  const float fx = c.fraction[0], fy = c.fraction[1];
  const float near = mix(fy, mix(fx, v[0], v[1]), mix(fx, v[2], v[3]));
  const float far = mix(fy, mix(fx, v[4], v[5]), mix(fx, v[6], v[7]));
  return mix(c.fraction[2], near, far);
}

// Adds what corners inside contribute at the border. which: voxels of the column, a bit each.
template <int step>
__device__ __forceinline__ void add_at_border(
    const LeanPass& p, const LeanColumn& column, unsigned which) {
  for (; which != 0; which &= which - 1) {
    const int z = column.z + __ffs(static_cast<int>(which)) - 1;
    LeanCell cells[1];
    find_cells(p, column, z, p.field + column.offset(p.field_strides, z), step, cells);
    if (corners_inside(p, cells[0]) == 0) continue;
    const int channels = step == 3 ? 1 : p.channels;
    for (int c = 0; c < channels; ++c) {
      const float* plane = p.image + column.n * p.image_strides.image + c * p.image_channel;
      const Corners<step> corners = load_corners_inside<step>(p, cells[0], plane);
      float* output = p.output + column.offset(p.output_strides, z) + c * p.output_channel;
      for (int k = 0; k < step; ++k) output[k] += value_of(cells[0], corners.v[k]) * p.factor;
    }
  }
}

template <int step>
__global__ __launch_bounds__(kThreads, 4) void lean_values_kernel(
    const SIMILIS_GRID_CONSTANT LeanPass p) {
  __shared__ Triplets<kBatch> staged[step == 3 ? kTileY : 1];
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
    const int channels = step == 3 ? 1 : p.channels;
    for (int c = 0; c < channels; ++c) {
      const Lines lines(image + c * p.image_channel, p.image_strides);
      float values[kBatch][step];
#pragma unroll
      for (int d = 0; d < kBatch; ++d) {
        const Corners<step> corners = load_corners<step>(lines, cells[d].offset);
#pragma unroll
        for (int k = 0; k < step; ++k) {
          const float value = value_of(cells[d], corners.v[k]) * p.factor;
          values[d][k] = inside >> d & 1u ? value : 0.0f;
        }
      }
      const std::int64_t out_at = opaque(column.offset(p.output_strides, z) + c * p.output_channel);
      if (p.addend != nullptr) {
        const float* addend = p.addend + out_at;
#pragma unroll
        for (int d = 0; d < kBatch; ++d, addend += p.output_strides.z) {
#pragma unroll
          for (int k = 0; k < step; ++k) {
            if (mine >> d & 1u) values[d][k] += addend[k];
          }
        }
      }
      if constexpr (step == 3) {
        Triplets<kBatch>& triplets = staged[warp()];
#pragma unroll
        for (int d = 0; d < kBatch; ++d) {
#pragma unroll
          for (int k = 0; k < step; ++k) triplets.put(d, k, values[d][k]);
        }
        gpu::sync_warp();
        triplets.store(
            p, column, z, p.output + column.row_offset(p.output_strides, z), p.output_strides.z);
        gpu::sync_warp();
      } else {
        float* output = p.output + out_at;
#pragma unroll
        for (int d = 0; d < kBatch; ++d, output += p.output_strides.z) {
          if (mine >> d & 1u) *output = values[d][0];
        }
      }
    }
  }
  add_at_border<step>(p, column, at_border);
}

}  // namespace

LeanKernel lean_values(int step) {
  return {step == 3 ? lean_values_kernel<3> : lean_values_kernel<1>, 8, 0};
}

}  // namespace similis::warp_internal
