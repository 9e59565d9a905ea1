// SPDX-License-Identifier: Apache-2.0
// The image's gradient of the common call.
//
//   indices of a block ─> the box of the image that its cells touch
//   each voxel again ─> cell ─> weights · upstream added up in the box, in shared memory
//   box ─> red.add, 16 bytes at once
//
// Neighbours touch the same voxels: a block of 2048 with 16,384 corners has a box of about 6,000.
// Where its cells lie too far apart for one, they are added to the image corner by corner.
#include <climits>

#include "src/warp/cuda_lean.cuh"

namespace similis::warp_internal {
namespace {

constexpr int kDepth = 8;

// Shared memory of a block, and blocks that a multiprocessor is to have.
template <int step> constexpr int kBoxFloats = step == 3 ? 3 * 6200 : 7000;
template <int step> constexpr int kLeastBlocks = step == 3 ? 3 : 4;

// The voxels of the image that a block's cells touch. Along x it begins and ends at multiples of 4.
struct Box {
  int first[3], extent[3];
  int plane;     // floats from one plane to the next, a multiple of the banks' number
  bool is_kept;  // there is one, and it fits shared memory
};

// Every thread of the block calls it. Cells that are not inside widen the box, to the border at
// most.
template <int step>
__device__ __forceinline__ Box find_box(
    const LeanPass& p, const LeanColumn& column, const float* u) {
  __shared__ int least[6];  // voxels, and their negatives
  if (threadIdx.x < 6) least[threadIdx.x] = INT_MAX;
  int low[3] = {INT_MAX, INT_MAX, INT_MAX}, high[3] = {INT_MIN, INT_MIN, INT_MIN};
#pragma unroll 4
  for (int z = column.z; z < column.end; ++z, u += p.field_strides.z) {
#pragma unroll
    for (int a = 0; a < 3; ++a) {
      float fraction;
      const int voxel = split(column.index(a, p.first[2] + z, __ldg(u + a)), &fraction);
      low[a] = min(low[a], voxel);
      high[a] = max(high[a], voxel);
    }
  }
  __syncthreads();
#pragma unroll
  for (int a = 0; a < 3; ++a) {
    const int least_low = gpu::min_of_32(low[a]);
    const int least_high = gpu::min_of_32(-max(high[a], -INT_MAX));
    if (lane() == 0) {
      atomicMin(&least[a], least_low);
      atomicMin(&least[3 + a], least_high);
    }
  }
  __syncthreads();
  Box box;
  box.is_kept = true;
  for (int a = 0; a < 3; ++a) {
    box.first[a] = max(least[a], 0);
    box.extent[a] = min(-least[3 + a], p.last[a] - 1) + 2 - box.first[a];  // with the far corner
    box.is_kept &= box.extent[a] >= 2;
  }
  if (!box.is_kept) return box;
  box.extent[0] = (box.extent[0] + box.first[0] % 4 + 3) / 4 * 4;
  box.first[0] -= box.first[0] % 4;
  const std::int64_t plane = (std::int64_t{step} * box.extent[0] * box.extent[1] + 31) / 32 * 32;
  box.plane = static_cast<int>(plane);
  box.is_kept = plane * box.extent[2] <= p.box_floats;  // of extents below 2²⁰
  return box;
}

// Additions of neighbours in shared memory, each of which is a comparison and perhaps another try:
// side by side, so that they do not wait for each other.
template <int count>
__device__ __forceinline__ void add_shared(float* to, const float (&values)[count]) {
  auto* bits = reinterpret_cast<unsigned*>(to);
  unsigned old[count];
  bool is_done[count];
#pragma unroll
  for (int i = 0; i < count; ++i) old[i] = *static_cast<volatile unsigned*>(bits + i);
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const unsigned sum = __float_as_uint(__uint_as_float(old[i]) + values[i]);
    is_done[i] = atomicCAS(bits + i, old[i], sum) == old[i];
  }
#pragma unroll
  for (int i = 0; i < count; ++i) {
    if (!is_done[i]) atomicAdd(to + i, values[i]);
  }
}

// The corners of one cell to sums kept in the box.
template <int step>
__device__ __forceinline__ void add_to_box(
    const Box& box, const LeanCell& cell, const float (&g)[step], float* kept) {
  const int sy = box.extent[0] * step, sz = box.plane;
  float* first = kept + (cell.voxel[2] - box.first[2]) * sz + (cell.voxel[1] - box.first[1]) * sy +
                 (cell.voxel[0] - box.first[0]) * step;
  const float fx = cell.fraction[0], fy = cell.fraction[1], fz = cell.fraction[2];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const float weight = (k % 2 ? fy : 1 - fy) * (k / 2 ? fz : 1 - fz);
    float values[2 * step];
#pragma unroll
    for (int c = 0; c < step; ++c) {
      const float both = g[c] * weight;
      values[step + c] = both * fx;
      values[c] = both - values[step + c];
    }
    add_shared(first + (k % 2 ? sy : 0) + (k / 2 ? sz : 0), values);
  }
}

// Neighbours in memory, two of them in one addition where the device has that.
__device__ __forceinline__ void add_pair(float* to, float first, float second) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  atomicAdd(reinterpret_cast<float2*>(to), make_float2(first, second));
#else
  atomicAdd(to, first);
  atomicAdd(to + 1, second);
#endif
}

// The corners of one cell to the image: the neighbours of a line in pairs from an even address on.
template <int step>
__device__ __noinline__ void add_to_image(
    const LeanPass& p, const LeanCell cell, const float* upstream, float* sums) {
  const LeanStrides& s = p.sums_strides;
  const unsigned which = corners_inside(p, cell);
  if (which == 0) return;
  float* first = sums + cell.place(s, step);
  const float fx = cell.fraction[0], fy = cell.fraction[1], fz = cell.fraction[2];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const float weight = (k % 2 ? fy : 1 - fy) * (k / 2 ? fz : 1 - fz);
    float* line = first + (k % 2 ? s.y : 0) + (k / 2 ? s.z : 0);
    float v[2 * step];
#pragma unroll
    for (int c = 0; c < step; ++c) {
      v[step + c] = upstream[c] * weight * fx;
      v[c] = upstream[c] * weight - v[step + c];
    }
    const unsigned sides = which >> 2 * k & 3u;
    if (sides != 3) {
#pragma unroll
      for (int i = 0; i < 2 * step; ++i) {
        if (sides >> i / step & 1u) atomicAdd(line + i, v[i]);
      }
    } else if (reinterpret_cast<std::uintptr_t>(line) % 8 == 0) {
#pragma unroll
      for (int i = 0; i < 2 * step; i += 2) add_pair(line + i, v[i], v[i + 1]);
    } else {
      atomicAdd(line, v[0]);
#pragma unroll
      for (int i = 1; i + 1 < 2 * step; i += 2) add_pair(line + i, v[i], v[i + 1]);
      atomicAdd(line + 2 * step - 1, v[2 * step - 1]);
    }
  }
}

// Quotients of numbers below 2¹⁶ by one divisor.
struct Divisor {
  unsigned factor;
  __device__ explicit Divisor(int divisor)
      : factor(0xffffffffu / static_cast<unsigned>(divisor) + 1) {}
  __device__ int quotient(int i) const {
    return factor == 0 ? i : static_cast<int>(__umulhi(static_cast<unsigned>(i), factor));
  }
};

__device__ __forceinline__ void add_nonzero(float* to, const float4& v) {
  if (v.x == 0 && v.y == 0 && v.z == 0 && v.w == 0) return;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  atomicAdd(reinterpret_cast<float4*>(to), v);
#else
  for (int i = 0; i < 4; ++i) atomicAdd(to + i, (&v.x)[i]);
#endif
}
__device__ __forceinline__ void add_nonzero(float* to, float v) {
  if (v != 0) atomicAdd(to, v);
}

// The box to the image. What is 0, as all is that lies beyond the image, is left out.
template <int step, class Vector>
__device__ __forceinline__ void flush(
    const LeanPass& p, const Box& box, const Vector* kept, float* sums) {
  constexpr int width = sizeof(Vector) / sizeof(float);
  const int line = box.extent[0] * step / width, plane = box.plane / width;
  const Divisor by_line(line), by_plane(plane);
  const LeanStrides& s = p.sums_strides;
  float* first = sums + (box.first[2] * s.z + box.first[1] * s.y + box.first[0] * step);
  const int end = plane * box.extent[2];
  for (int i = static_cast<int>(threadIdx.x); i < end; i += kThreads) {
    const int z = by_plane.quotient(i), rest = i - z * plane, y = by_line.quotient(rest);
    add_nonzero(first + (z * s.z + y * s.y + (rest - y * line) * width), kept[i]);
  }
}

// Whether four voxels from a multiple of 4 on lie in the image and take whole vectors.
__device__ __forceinline__ bool takes_vectors(const LeanPass& p, const float* sums) {
  const LeanStrides& s = p.sums_strides;
  return (p.last[0] + 1) % 4 == 0 && s.y % 4 == 0 && s.z % 4 == 0 &&
         reinterpret_cast<std::uintptr_t>(sums) % sizeof(float4) == 0;
}

template <int step>
__global__ __launch_bounds__(kThreads, kLeastBlocks<step>) void lean_scatter_kernel(
    const SIMILIS_GRID_CONSTANT LeanPass p) {
  extern __shared__ float4 kept[];
  const LeanColumn column(p);
  const float* u = p.field + column.offset(p.field_strides, column.z);
  const Box box = find_box<step>(p, column, opaque(u));
  if (box.is_kept) {
    for (int i = static_cast<int>(threadIdx.x); i < box.plane / 4 * box.extent[2]; i += kThreads) {
      kept[i] = make_float4(0, 0, 0, 0);
    }
  }
  __syncthreads();
  const float* upstream = p.upstream + opaque(column.offset(p.upstream_strides, column.z) +
                                              column.c * p.upstream_channel);
  float* sums = p.sums + column.n * p.sums_strides.image + column.c * p.sums_channel;
  u = opaque(u);
  // Lanes and warps begin at planes apart, so that hardly two additions meet at one voxel at a
  // time: 11 comparisons a warp for 8 additions, and 21 if all begin at the first plane.
#pragma unroll 1
  for (int i = 0; i < kDepth; ++i) {
    const int d = (i + 2 * lane() + kDepth / 2 * warp()) % kDepth;
    const int z = column.z + d;
    if (z >= column.end || !column.is_mine) continue;
    LeanCell cells[1];
    const bool has_cell =
        find_cells(p, column, z, u + static_cast<std::int64_t>(d) * p.field_strides.z, step, cells);
    const float* here = upstream + static_cast<std::int64_t>(d) * p.upstream_strides.z;
    if (has_cell && box.is_kept) {
      float g[step];
#pragma unroll
      for (int k = 0; k < step; ++k) g[k] = __ldg(here + k);
      add_to_box<step>(box, cells[0], g, reinterpret_cast<float*>(kept));
    } else {
      add_to_image<step>(p, cells[0], here, sums);
    }
  }
  __syncthreads();
  if (!box.is_kept) return;
  if (takes_vectors(p, sums)) {
    flush<step>(p, box, kept, sums);
  } else {
    flush<step>(p, box, reinterpret_cast<const float*>(kept), sums);
  }
}

}  // namespace

LeanKernel lean_scatter(int step) {
  return {step == 3 ? lean_scatter_kernel<3> : lean_scatter_kernel<1>, kDepth,
      sizeof(float) * (step == 3 ? kBoxFloats<3> : kBoxFloats<1>)};
}

}  // namespace similis::warp_internal
