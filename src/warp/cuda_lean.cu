// SPDX-License-Identifier: Apache-2.0
// The common call on the GPU, and nothing else: linear interpolation of an f32 volume, zeros
// outside, at A·x + u(x) with u in f32. What cuda_values.cu and cuda_gradients.cu decide for each
// voxel is decided for the launch, and addresses take one instruction.
//
//   u of 4 voxels ─> indices in f64 ─> cells ─> 8 loads each, from voxel 0 where there is no cell
//   ─> values, or slopes · upstream ─> three components through shared memory, so that stores are
//   whole
//
// Voxels without a cell (at the border of the image) are noted and taken one by one at the end.
#include "src/warp/cuda_cell.cuh"
#include "src/warp/cuda_kernels.h"
#include "src/warp/cuda_lean.h"

namespace similis::warp_internal {
namespace {

constexpr int kWarpsOfBlock = kThreads / kTileX;

// Where a thread's voxels are, and what is the same for all of them. step is the distance of
// neighbours along x: 1, or 3 for a field whose components are channels.
struct Thread {
  int x, y, z, count;  // count of voxels along z
  bool is_inside;
  std::int64_t n;

  __device__ explicit Thread(const LeanPass& p) {
    const unsigned image = blockIdx.x / p.tiles, tile = blockIdx.x % p.tiles;
    const unsigned row = tile / p.tiles_x;
    x = static_cast<int>(tile % p.tiles_x) * kTileX + static_cast<int>(threadIdx.x % kTileX);
    y = static_cast<int>(row % p.tiles_y) * kTileY + static_cast<int>(threadIdx.x / kTileX);
    z = static_cast<int>(row / p.tiles_y) * kTileZ;
    n = image;
    is_inside = x < p.out[0] && y < p.out[1];
    count = is_inside ? min(kTileZ, p.out[2] - z) : 0;
  }
  __device__ std::int64_t offset(const LeanStrides& s) const {
    return n * s.image + static_cast<std::int64_t>(z) * s.z + static_cast<std::int64_t>(y) * s.y +
           static_cast<std::int64_t>(x) * s.x;
  }
};

struct LeanCell {
  std::int64_t offset;  // of the first corner; 0 where there is none
  float fx, fy, fz;
};

// The floor of an index, its last bits in `voxel`, and whether the cell lies inside.
__device__ __forceinline__ bool split(double index, int last, int* voxel, float* fraction) {
#if defined(__CUDA_ARCH__)
  const double shifted = __dadd_rd(index, 0x1.8p52);
  const auto bits = bits_as<std::uint64_t>(shifted);
  *voxel = static_cast<int>(bits);
  *fraction = static_cast<float>(index - (shifted - 0x1.8p52));
  return static_cast<std::uint32_t>(bits >> 32) == 0x43380000u &&
         static_cast<std::uint32_t>(bits) < static_cast<std::uint32_t>(last);
#else
  const double first = floor(index);
  const bool is_inside = first >= 0 && first < last;
  *voxel = is_inside ? static_cast<int>(first) : 0;
  *fraction = static_cast<float>(index - first);
  return is_inside;
#endif
}

// The cells of a thread's voxels. Returns which have one, a bit each.
__device__ __forceinline__ unsigned find_cells(
    const LeanPass& p, const Thread& thread, LeanCell (&cells)[kTileZ]) {
  const Transform& t = p.transforms[thread.n];
  const float* field = p.field + thread.offset(p.field_strides);
  float u[kTileZ][3];
#pragma unroll
  for (int d = 0; d < kTileZ; ++d) {
    const float* at = field + static_cast<std::int64_t>(d) * p.field_strides.z;
#pragma unroll
    for (int a = 0; a < 3; ++a) u[d][a] = d < thread.count ? at[a] : 0.0f;
  }
  const double gx = p.first[0] + thread.x, gy = p.first[1] + thread.y;
  int voxel[kTileZ][3];
  float fraction[kTileZ][3];
  unsigned inside = (1u << thread.count) - 1;
#pragma unroll
  for (int a = 0; a < 3; ++a) {
    // As ColumnBase and find_index() form it.
    const double base = fma(t.m[a][0], gx, fma(t.m[a][1], gy, t.m[a][3]));
    const double by_z = t.m[a][2], by_u = t.s[a][a];
#pragma unroll
    for (int d = 0; d < kTileZ; ++d) {
      const double gz = p.first[2] + (thread.z + d);
      const double index = fma(by_u, static_cast<double>(u[d][a]), fma(by_z, gz, base));
      if (!split(index, p.last[a], &voxel[d][a], &fraction[d][a])) inside &= ~(1u << d);
    }
  }
  const LeanStrides& s = p.image_strides;
#pragma unroll
  for (int d = 0; d < kTileZ; ++d) {
    const std::int64_t offset = static_cast<std::int64_t>(voxel[d][2]) * s.z +
                                static_cast<std::int64_t>(voxel[d][1]) * s.y +
                                static_cast<std::int64_t>(voxel[d][0]) * s.x;
    cells[d] = {inside >> d & 1u ? offset : 0, fraction[d][0], fraction[d][1], fraction[d][2]};
  }
  return inside;
}

struct Corners {
  float v[8];
};

template <int step>
__device__ __forceinline__ Corners load_corners(const LeanPass& p, const float* first) {
  const std::int64_t sy = p.image_strides.y, sz = p.image_strides.z;
  const float *second = first + sy, *third = first + sz, *fourth = second + sz;
  return {{__ldg(first), __ldg(first + step), __ldg(second), __ldg(second + step), __ldg(third),
      __ldg(third + step), __ldg(fourth), __ldg(fourth + step)}};
}

__device__ __forceinline__ float mix(float f, float a, float b) { return fmaf(f, b - a, a); }

__device__ __forceinline__ float value_of(const LeanCell& c, const Corners& k) {
  const float near = mix(c.fy, mix(c.fx, k.v[0], k.v[1]), mix(c.fx, k.v[2], k.v[3]));
  const float far = mix(c.fy, mix(c.fx, k.v[4], k.v[5]), mix(c.fx, k.v[6], k.v[7]));
  return mix(c.fz, near, far);
}

// Adds g times the slopes along x, y, z.
__device__ __forceinline__ void add_slopes(
    const LeanCell& c, const Corners& k, float g, float (&sum)[3]) {
  const float x0 = mix(c.fy, k.v[1] - k.v[0], k.v[3] - k.v[2]);
  const float x1 = mix(c.fy, k.v[5] - k.v[4], k.v[7] - k.v[6]);
  const float l0 = mix(c.fx, k.v[0], k.v[1]), l1 = mix(c.fx, k.v[2], k.v[3]);
  const float l2 = mix(c.fx, k.v[4], k.v[5]), l3 = mix(c.fx, k.v[6], k.v[7]);
  sum[0] = fmaf(g, mix(c.fz, x0, x1), sum[0]);
  sum[1] = fmaf(g, mix(c.fz, l1 - l0, l3 - l2), sum[1]);
  sum[2] = fmaf(g, mix(c.fy, l2, l3) - mix(c.fy, l0, l1), sum[2]);
}

// Three floats a lane, stored by the warp as neighbours; lanes beyond `lanes` have none.
__device__ __forceinline__ void store_triplets(
    float* row, const float (&mine)[3], int lanes, float* staged) {
  const int lane = static_cast<int>(threadIdx.x % kTileX);
#pragma unroll
  for (int a = 0; a < 3; ++a) staged[3 * lane + a] = mine[a];
  gpu::sync_warp();
#pragma unroll
  for (int a = 0; a < 3; ++a) {
    const int i = a * kTileX + lane;
    if (i < 3 * lanes) row[i] = staged[i];
  }
  gpu::sync_warp();
}

// The index of one voxel again, for the general way.
__device__ void index_of(const LeanPass& p, const Thread& thread, int d, double (&index)[3]) {
  const Transform& t = p.transforms[thread.n];
  const double gx = p.first[0] + thread.x, gy = p.first[1] + thread.y,
               gz = p.first[2] + (thread.z + d);
  const float* at =
      p.field + thread.offset(p.field_strides) + static_cast<std::int64_t>(d) * p.field_strides.z;
  for (int a = 0; a < 3; ++a) {
    const double base = fma(t.m[a][0], gx, fma(t.m[a][1], gy, t.m[a][3]));
    index[a] = fma(t.s[a][a], static_cast<double>(at[a]), fma(t.m[a][2], gz, base));
  }
}

__device__ void taps_of(const LeanPass& p, const Thread& thread, int d, Taps<float, 2> (&axis)[3]) {
  double index[3];
  index_of(p, thread, d, index);
  for (int a = 0; a < 3; ++a) {
    const Place placed = place(index[a], p.last[a], Outside::zeros, true);
    axis[a] = taps<float, 2>(placed.index, p.last[a] + 1);
  }
}

template <int step>
__device__ Sampled<float> sample_at_border(
    const LeanPass& p, const Taps<float, 2> (&axis)[3], const float* plane) {
  return interpolate(axis, 2, [&](int x, int y, int z) {
    return plane[static_cast<std::int64_t>(z) * p.image_strides.z +
                 static_cast<std::int64_t>(y) * p.image_strides.y +
                 static_cast<std::int64_t>(x) * step];
  });
}

template <int step>
__device__ __noinline__ float3 value_at_border(
    const LeanPass& p, int x, int y, int z, int d, std::int64_t n, std::int64_t c) {
  Thread thread(p);
  thread.x = x, thread.y = y, thread.z = z, thread.n = n;
  Taps<float, 2> axis[3];
  taps_of(p, thread, d, axis);
  const float* plane = p.image + n * p.image_strides.image;
  float v[3] = {0, 0, 0};
  for (int k = 0; k < step; ++k) {
    v[k] = sample_at_border<step>(p, axis, plane + (step == 1 ? c * p.image_channel : k)).value;
  }
  return make_float3(v[0], v[1], v[2]);
}

template <int step>
__global__ __launch_bounds__(kThreads) void lean_values_kernel(
    const SIMILIS_GRID_CONSTANT LeanPass p) {
  __shared__ float staged[step == 3 ? kWarpsOfBlock : 1][3 * kTileX];
  const Thread thread(p);
  LeanCell cells[kTileZ];
  const unsigned inside = find_cells(p, thread, cells);
  const float* image = p.image + thread.n * p.image_strides.image;
  const std::int64_t out_at = thread.offset(p.output_strides);
  const int lanes = min(kTileX, p.out[0] - (thread.x - static_cast<int>(threadIdx.x % kTileX)));
  const int channels = step == 3 ? 1 : p.channels;
  for (int c = 0; c < channels; ++c) {
    const float* plane = image + (step == 1 ? c * p.image_channel : 0);
    float values[kTileZ][step];
#pragma unroll
    for (int d = 0; d < kTileZ; ++d) {
#pragma unroll
      for (int k = 0; k < step; ++k) {
        values[d][k] = value_of(cells[d], load_corners<step>(p, plane + cells[d].offset + k));
      }
    }
#pragma unroll
    for (int d = 0; d < kTileZ; ++d) {
      if (d < thread.count && !(inside >> d & 1u)) {
        const float3 v = value_at_border<step>(p, thread.x, thread.y, thread.z, d, thread.n, c);
        values[d][0] = v.x;
        if (step == 3) values[d][1 % step] = v.y, values[d][2 % step] = v.z;
      }
      const std::int64_t at = out_at + static_cast<std::int64_t>(d) * p.output_strides.z +
                              (step == 1 ? c * p.output_channel : 0);
      float result[3] = {0, 0, 0};
#pragma unroll
      for (int k = 0; k < step; ++k) {
        result[k] = values[d][k] * p.factor;
        if (p.addend != nullptr && d < thread.count) result[k] += p.addend[at + k];
      }
      if (step == 1) {
        if (d < thread.count) p.output[at] = result[0];
      } else if (thread.z + d < p.out[2] && thread.y < p.out[1]) {  // alike in the warp
        const std::int64_t row = at - 3 * static_cast<std::int64_t>(threadIdx.x % kTileX);
        store_triplets(p.output + row, result, lanes, staged[threadIdx.x / kTileX]);
      }
    }
  }
}

// The four pairs of corners along x of one cell, in one channel: see scatter_cells() for what the
// lanes hand to each other.
template <int step>
__device__ __forceinline__ void scatter(const LeanPass& p, const LeanCell& cell, float* plane,
    float g, bool is_inside, [[maybe_unused]] bool takes, bool gives) {
  const std::int64_t sy = p.sums_strides.y, sz = p.sums_strides.z;
  float* first = plane + cell.offset;
  const float right = g * cell.fx, left = g - right;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const float weight = (k % 2 ? cell.fy : 1 - cell.fy) * (k / 2 ? cell.fz : 1 - cell.fz);
    float to_left = left * weight;
    const float to_right = right * weight;
#if !defined(__HIPCC__)
    const float handed = __shfl_up_sync(0xffffffffu, to_right, 1);
    if (takes) to_left += handed;
#endif
    if (!is_inside) continue;
    float* row = first + (k % 2 ? sy : 0) + (k / 2 ? sz : 0);
    atomicAdd(row, to_left);
    if (!gives) atomicAdd(row + step, to_right);
  }
}

template <int step>
__device__ __noinline__ float3 gradient_at_border(
    const LeanPass& p, int x, int y, int z, int d, std::int64_t n) {
  Thread thread(p);
  thread.x = x, thread.y = y, thread.z = z, thread.n = n;
  Taps<float, 2> axis[3];
  taps_of(p, thread, d, axis);
  const std::int64_t upstream_at =
      thread.offset(p.upstream_strides) + static_cast<std::int64_t>(d) * p.upstream_strides.z;
  float sum[3] = {0, 0, 0};
  const int channels = step == 3 ? 3 : p.channels;
  for (int c = 0; c < channels; ++c) {
    const float g = p.upstream[upstream_at + (step == 3 ? c : c * p.upstream_channel)];
    const float* plane =
        p.image + n * p.image_strides.image + (step == 3 ? c : c * p.image_channel);
    if (p.field_gradient != nullptr) {
      const Sampled<float> s = sample_at_border<step>(p, axis, plane);
      for (int a = 0; a < 3; ++a) sum[a] = fmaf(g, s.slope[a], sum[a]);
    }
    if (p.sums == nullptr) continue;
    float* sums = p.sums + n * p.sums_strides.image + (step == 3 ? c : c * p.sums_channel);
    for (int corner = 0; corner < 8; ++corner) {
      const int kx = corner & 1, ky = corner >> 1 & 1, kz = corner >> 2;
      const int vx = axis[0].voxel[kx], vy = axis[1].voxel[ky], vz = axis[2].voxel[kz];
      if (vx == kNoVoxel || vy == kNoVoxel || vz == kNoVoxel) continue;
      atomicAdd(sums + static_cast<std::int64_t>(vz) * p.sums_strides.z +
                    static_cast<std::int64_t>(vy) * p.sums_strides.y +
                    static_cast<std::int64_t>(vx) * step,
          g * axis[0].weight[kx] * axis[1].weight[ky] * axis[2].weight[kz]);
    }
  }
  return make_float3(sum[0], sum[1], sum[2]);
}

template <int step>
__global__ __launch_bounds__(kThreads, 3) void lean_gradients_kernel(
    const SIMILIS_GRID_CONSTANT LeanPass p) {
  __shared__ float staged[kWarpsOfBlock][3 * kTileX];
  const Thread thread(p);
  LeanCell cells[kTileZ];
  const unsigned inside = find_cells(p, thread, cells);
  const float* image = p.image + thread.n * p.image_strides.image;
  const Transform& t = p.transforms[thread.n];
  const std::int64_t upstream_at = thread.offset(p.upstream_strides);
  const std::int64_t gradient_at = thread.offset(p.gradient_strides);
  const int lanes = min(kTileX, p.out[0] - (thread.x - static_cast<int>(threadIdx.x % kTileX)));
  const int channels = step == 3 ? 3 : p.channels;
#pragma unroll
  for (int d = 0; d < kTileZ; ++d) {
    if (thread.z + d >= p.out[2]) break;  // alike in all threads
    const bool has_cell = inside >> d & 1u;
    bool takes = false, gives = false;
#if !defined(__HIPCC__)
    if (p.sums != nullptr) {
      const std::int64_t mine = has_cell ? cells[d].offset : -1;
      const std::int64_t before = __shfl_up_sync(0xffffffffu, mine, 1);
      takes = threadIdx.x % kTileX != 0 && has_cell && before >= 0 && before + step == mine;
      gives = __shfl_down_sync(0xffffffffu, takes ? 1 : 0, 1) != 0 &&
              threadIdx.x % kTileX != kTileX - 1;
    }
#endif
    float sum[3] = {0, 0, 0};
    for (int c = 0; c < channels; ++c) {
      const std::int64_t at = upstream_at + static_cast<std::int64_t>(d) * p.upstream_strides.z +
                              (step == 3 ? c : c * p.upstream_channel);
      const float g = has_cell ? p.upstream[at] : 0.0f;
      if (p.field_gradient != nullptr) {
        const float* plane = image + (step == 3 ? c : c * p.image_channel);
        add_slopes(cells[d], load_corners<step>(p, plane + cells[d].offset), g, sum);
      }
      if (p.sums != nullptr) {
        float* sums =
            p.sums + thread.n * p.sums_strides.image + (step == 3 ? c : c * p.sums_channel);
        scatter<step>(p, cells[d], sums, g, has_cell, takes, gives);
      }
    }
    if (d < thread.count && !has_cell) {
      const float3 v = gradient_at_border<step>(p, thread.x, thread.y, thread.z, d, thread.n);
      sum[0] = v.x, sum[1] = v.y, sum[2] = v.z;
    }
    if (p.field_gradient == nullptr || thread.y >= p.out[1]) continue;  // alike in the warp
#pragma unroll
    for (int a = 0; a < 3; ++a) sum[a] *= static_cast<float>(t.s[a][a]);
    const std::int64_t row = gradient_at + static_cast<std::int64_t>(d) * p.gradient_strides.z -
                             3 * static_cast<std::int64_t>(threadIdx.x % kTileX);
    store_triplets(p.field_gradient + row, sum, lanes, staged[threadIdx.x / kTileX]);
  }
}

}  // namespace

LeanKernel lean_values_kernel_for(int step) {
  return step == 3 ? lean_values_kernel<3> : lean_values_kernel<1>;
}

LeanKernel lean_gradients_kernel_for(int step) {
  return step == 3 ? lean_gradients_kernel<3> : lean_gradients_kernel<1>;
}

}  // namespace similis::warp_internal
