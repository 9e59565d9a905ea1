// SPDX-License-Identifier: Apache-2.0
// What the kernels of cuda_lean.h share: where a thread's voxels are, their cells, and the eight
// loads of each.
//
// A warp takes 32 neighbours along x, a thread voxels behind each other, kBatch at a time so that
// their loads are in flight together. Threads beyond the output repeat its last voxels and store
// nothing. A voxel whose cell is not all inside reads voxel 0, counts as 0, and is noted; what its
// corners inside contribute is added at the end, where that costs the others no registers.
#pragma once

#include "src/warp/cuda_cell.cuh"
#include "src/warp/cuda_lean.h"

namespace similis::warp_internal {

constexpr int kBatch = 4;

// Hides how a pointer or an offset was formed: else the compiler adds up in 64 bits, at every use,
// what both are made of, and a voxel takes 180 instructions instead of 105.
template <class T> __device__ __forceinline__ T opaque(T address) {
#if !defined(__HIPCC__)
  asm("" : "+l"(address));
#endif
  return address;
}

__device__ inline int lane() { return static_cast<int>(threadIdx.x % kTileX); }
__device__ inline int warp() { return static_cast<int>(threadIdx.x / kTileX); }
__device__ inline int row_x() { return static_cast<int>(blockIdx.x) * kTileX; }

/// A thread's column of voxels.
struct LeanColumn {
  int x, y, z, end;  // along z it ends before `end`
  int n, c;          // the image, and the channel where blocks have one each
  bool is_mine;      // it repeats no other
  double base[3], by_z[3], by_u[3];

  __device__ explicit LeanColumn(const LeanPass& p) {
    x = row_x() + lane();
    y = static_cast<int>(blockIdx.y) * kTileY + warp();
    const int plane = static_cast<int>(blockIdx.z) / p.tiles_z;
    n = plane / p.block_channels;
    c = plane - n * p.block_channels;
    z = (static_cast<int>(blockIdx.z) - plane * p.tiles_z) * p.depth;
    end = min(z + p.depth, p.out[2]);
    is_mine = x < p.out[0] && y < p.out[1];
    x = min(x, p.out[0] - 1);
    y = min(y, p.out[1] - 1);
    const Transform& t = p.transforms[n];
    const double gx = p.first[0] + x, gy = p.first[1] + y;
#pragma unroll
    for (int a = 0; a < 3; ++a) {
      // As ColumnBase and find_index() form it.
      base[a] = fma(t.m[a][0], gx, fma(t.m[a][1], gy, t.m[a][3]));
      by_z[a] = t.m[a][2];
      by_u[a] = t.s[a][a];
    }
  }
  /// Of the voxel at z; of the warp's first lane.
  __device__ std::int64_t offset(const LeanStrides& s, int at_z) const {
    return row_offset(s, at_z) + static_cast<std::int64_t>(x - row_x()) * s.x;
  }
  __device__ std::int64_t row_offset(const LeanStrides& s, int at_z) const {
    return n * s.image + static_cast<std::int64_t>(at_z) * s.z +
           static_cast<std::int64_t>(y) * s.y + static_cast<std::int64_t>(row_x()) * s.x;
  }
  __device__ double index(int a, double gz, float u) const {
    return fma(by_u[a], static_cast<double>(u), fma(by_z[a], gz, base[a]));
  }
  /// Of `count` voxels from z on: those that are mine, a bit each.
  __device__ unsigned mine(int at_z, int count) const {
    return is_mine ? (1u << min(count, end - at_z)) - 1 : 0;
  }
};

/// The cell of one voxel.
struct LeanCell {
  int offset;  // of its first corner; 0 where there is no cell
  float fraction[3];
  int voxel[3];

  /// Of the first corner, which a voxel at the border may lack.
  __device__ int place(const LeanStrides& s, int step) const {
    return voxel[2] * s.z + voxel[1] * s.y + voxel[0] * step;
  }
};

// The floor of an index, far from any voxel if that is not a number, and what is above it. Where
// the double's last bit is 2⁻³², its high word counts voxels and its low one is the fraction: no
// conversions, which are 4 times as dear as an addition.
__device__ __forceinline__ int split(double index, float* fraction) {
#if defined(__CUDA_ARCH__)
  constexpr double kCounter = 0x1.8p20;
  constexpr int kHighWord = 0x41380000;
  const double shifted = __dadd_rd(index, kCounter);
  const auto low = static_cast<unsigned>(__double2loint(shifted));
  *fraction = __uint_as_float(__funnelshift_r(low, 0x7f, 9)) - 1.0f;
  return __double2hiint(shifted) - kHighWord;
#else
  const double first = floor(index);
  const bool is_near = fabs(first) < static_cast<double>(kMostLeanVoxels);
  *fraction = is_near ? static_cast<float>(index - first) : 0;
  return is_near ? static_cast<int>(first) : static_cast<int>(kMostLeanVoxels);
#endif
}

/// The cells of voxels from z on, u being at the first. Returns which have one, a bit each.
template <int count>
__device__ __forceinline__ unsigned find_cells(const LeanPass& p, const LeanColumn& column, int z,
    const float* u, int step, LeanCell (&cells)[count]) {
  float loaded[count][3];
#pragma unroll
  for (int d = 0; d < count; ++d) {
#pragma unroll
    for (int a = 0; a < 3; ++a) loaded[d][a] = __ldg(u + a);
    if (d + 1 < count && z + d + 1 < column.end) u += p.field_strides.z;
  }
  const double gz = p.first[2] + z;
  unsigned inside = 0;
#pragma unroll
  for (int d = 0; d < count; ++d) {
    LeanCell& cell = cells[d];
    bool is_inside = true;
#pragma unroll
    for (int a = 0; a < 3; ++a) {
      cell.voxel[a] = split(column.index(a, gz + d, loaded[d][a]), &cell.fraction[a]);
      is_inside &= static_cast<unsigned>(cell.voxel[a]) < static_cast<unsigned>(p.last[a]);
    }
    cell.offset = is_inside ? cell.place(p.image_strides, step) : 0;
    inside |= is_inside ? 1u << d : 0;
  }
  return inside;
}

/// The four lines of an image on which a cell's corners lie.
struct Lines {
  const float* of[4];

  __device__ Lines(const float* plane, const LeanStrides& s)
      : of{opaque(plane), opaque(plane + s.y), opaque(plane + s.z), opaque(plane + s.z + s.y)} {}
};

/// Of `step` channels, the corners by x, y, z.
template <int step> struct Corners { float v[step][8]; };

template <int step>
__device__ __forceinline__ Corners<step> load_corners(const Lines& lines, int offset) {
  Corners<step> k;
#pragma unroll
  for (int line = 0; line < 4; ++line) {
    const float* first = lines.of[line] + offset;
#pragma unroll
    for (int c = 0; c < step; ++c) {
      k.v[c][2 * line] = __ldg(first + c);
      k.v[c][2 * line + 1] = __ldg(first + step + c);
    }
  }
  return k;
}

/// Which of a cell's corners are voxels, a bit each as in Corners.
__device__ __forceinline__ unsigned corners_inside(const LeanPass& p, const LeanCell& cell) {
  unsigned which = 0xff;
#pragma unroll
  for (int a = 0; a < 3; ++a) {
    constexpr unsigned kUpper[3] = {0xaa, 0xcc, 0xf0};
    const auto voxel = static_cast<unsigned>(cell.voxel[a]);
    const auto last = static_cast<unsigned>(p.last[a]);
    if (voxel > last) which &= kUpper[a];
    if (voxel + 1 > last) which &= ~kUpper[a];
  }
  return which;
}

/// Their values, 0 for those that are none.
template <int step>
__device__ __forceinline__ Corners<step> load_corners_inside(
    const LeanPass& p, const LeanCell& cell, const float* plane) {
  const unsigned which = corners_inside(p, cell);
  const Lines lines(plane, p.image_strides);
  const int offset = which == 0 ? 0 : cell.place(p.image_strides, step);
  Corners<step> k;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int c = 0; c < step; ++c) {
      k.v[c][i] = which >> i & 1u ? __ldg(lines.of[i / 2] + offset + (i % 2 ? step : 0) + c) : 0.0f;
    }
  }
  return k;
}

__device__ __forceinline__ float mix(float f, float a, float b) { return fmaf(f, b - a, a); }

/// Three floats a lane, of voxels behind each other, stored by the warp as neighbours, in whole
/// vectors where the address allows it.
template <int count> struct Triplets {
  float4 of[count][3 * kTileX / 4];

  __device__ __forceinline__ void put(int d, int component, float value) {
    reinterpret_cast<float*>(of[d])[3 * lane() + component] = value;
  }
  /// row: of the first lane at z. Lanes beyond the output have none.
  __device__ __forceinline__ void store(
      const LeanPass& p, const LeanColumn& column, int z, float* row, int stride) const {
    if (static_cast<int>(blockIdx.y) * kTileY + warp() >= p.out[1]) return;
    const int floats = 3 * min(kTileX, p.out[0] - row_x());
#pragma unroll
    for (int d = 0; d < count; ++d, row += stride) {
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

}  // namespace similis::warp_internal
