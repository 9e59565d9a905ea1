// SPDX-License-Identifier: Apache-2.0
// Parts that the kernels of fast_path.h share: the voxels of a thread, their cells, and the eight
// loads of each.
//
// A warp takes 32 neighbours along x, a thread takes voxels behind each other, kBatch at a time so
// that their loads are in flight together. Threads beyond the output repeat its last voxels and
// store nothing. A voxel whose cell is not all inside reads voxel 0, counts as 0, and is noted; the
// contribution of its corners inside is added at the end, where it costs the other voxels no
// registers.
#pragma once

#include "src/warp/cuda/cell.cuh"
#include "src/warp/cuda/fast_path.h"

namespace similis::warp_internal {

constexpr int kBatch = 4;

// Hides the origin of a pointer or an offset: else the compiler adds up in 64 bits, at every use,
// the numbers that both are made of, and a voxel takes 180 instructions instead of 105.
template <class T> __device__ __forceinline__ T opaque(T address) {
#if !defined(__HIPCC__)
  if constexpr (sizeof(T) == 8) {
    asm("" : "+l"(address));
  } else {
    asm("" : "+r"(address));
  }
#endif
  return address;
}

// Hides the origin of a number, so that results made of it are not kept in registers until their
// next use.
template <class T> __device__ __forceinline__ T recomputed(T value) {
#if !defined(__HIPCC__)
  if constexpr (sizeof(T) == 8) {
    asm volatile("" : "+d"(value));
  } else {
    asm volatile("" : "+f"(value));
  }
#endif
  return value;
}

__device__ inline int lane() { return static_cast<int>(threadIdx.x % kTileX); }
__device__ inline int warp() { return static_cast<int>(threadIdx.x / kTileX); }
__device__ inline int row_x() { return static_cast<int>(blockIdx.x) * kTileX; }

/// A thread's column of voxels.
struct FastColumn {
  int x, y, z, end;  // the column ends before `end` along z
  int n, c;          // the image, and the channel if blocks have one each
  bool is_mine;      // it repeats no other column
  double base[3], by_z[3], by_u[3];

  __device__ explicit FastColumn(const FastPass& p) {
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
      // The same as in ColumnBase and find_index().
      base[a] = fma(t.m[a][0], gx, fma(t.m[a][1], gy, t.m[a][3]));
      by_z[a] = t.m[a][2];
      by_u[a] = t.s[a][a];
    }
  }
  /// Return the offset of the voxel at z, of this thread and of the warp's first lane.
  __device__ std::int64_t offset(const FastStrides& s, int at_z) const {
    return row_offset(s, at_z) + static_cast<std::int64_t>(x - row_x()) * s.x;
  }
  __device__ std::int64_t row_offset(const FastStrides& s, int at_z) const {
    return n * s.image + static_cast<std::int64_t>(at_z) * s.z +
           static_cast<std::int64_t>(y) * s.y + static_cast<std::int64_t>(row_x()) * s.x;
  }
  __device__ double index(int a, double gz, float u) const {
    return fma(by_u[a], static_cast<double>(u), fma(by_z[a], gz, base[a]));
  }
  /// Returns which of `count` voxels from z on are mine, a bit each.
  __device__ unsigned mine(int at_z, int count) const {
    return is_mine ? (1u << min(count, end - at_z)) - 1 : 0;
  }
};

/// The cell of one voxel.
struct FastCell {
  int offset;  // of its first corner; 0 if there is no cell
  float fraction[3];
  int voxel[3];

  /// Returns the offset of the first corner, which a voxel at the border may lack.
  __device__ int place(const FastStrides& s, int step) const {
    return voxel[2] * s.z + voxel[1] * s.y + voxel[0] * step;
  }
};

// Returns the floor of an index, far from any voxel if that is not a number, and the fraction above
// it. If the double's last bit is 2⁻³², its high word counts voxels and its low one is the
// fraction: this needs no conversions, which cost 4 times as much as an addition.
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
  const bool is_near = fabs(first) < static_cast<double>(kMostFastVoxels);
  *fraction = is_near ? static_cast<float>(index - first) : 0;
  return is_near ? static_cast<int>(first) : static_cast<int>(kMostFastVoxels);
#endif
}

/// Loads the field at voxels from z on; u is at the first. Beyond the column its last voxel is
/// repeated.
template <int count>
__device__ __forceinline__ void load_field(
    const FastPass& p, const FastColumn& column, int z, const float* u, float (&loaded)[count][3]) {
#pragma unroll
  for (int d = 0; d < count; ++d) {
#pragma unroll
    for (int a = 0; a < 3; ++a) loaded[d][a] = __ldg(u + a);
    if (d + 1 < count && z + d + 1 < column.end) u += p.field_strides.z;
  }
}

/// Finds the cell at gz, and returns whether there is one; the caller computes its offset.
__device__ __forceinline__ bool find_cell(
    const FastPass& p, const FastColumn& column, double gz, const float (&u)[3], FastCell* cell) {
  bool is_inside = true;
#pragma unroll
  for (int a = 0; a < 3; ++a) {
    cell->voxel[a] = split(column.index(a, gz, u[a]), &cell->fraction[a]);
    is_inside &= static_cast<unsigned>(cell->voxel[a]) < static_cast<unsigned>(p.last[a]);
  }
  return is_inside;
}

/// Finds the cells of voxels from z on. Returns which voxels have one, a bit each.
template <int count>
__device__ __forceinline__ unsigned find_cells(const FastPass& p, const FastColumn& column, int z,
    const float* u, int step, FastCell (&cells)[count]) {
  float loaded[count][3];
  load_field(p, column, z, u, loaded);
  const double gz = p.first[2] + z;
  unsigned inside = 0;
#pragma unroll
  for (int d = 0; d < count; ++d) {
    const bool is_inside = find_cell(p, column, gz + d, loaded[d], &cells[d]);
    cells[d].offset = is_inside ? cells[d].place(p.image_strides, step) : 0;
    inside |= is_inside ? 1u << d : 0;
  }
  return inside;
}

/// Returns which of a cell's corners are voxels, a bit each as in Corners.
__device__ __forceinline__ unsigned corners_inside(const FastPass& p, const FastCell& cell) {
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

/// Calls body(z, cells, inside) for the column's voxels, kBatch at a time. Returns those at the
/// border, a bit each.
template <class Body>
__device__ __forceinline__ unsigned for_each_batch(
    const FastPass& p, const FastColumn& column, int step, const Body& body) {
  const float* u = opaque(p.field + column.offset(p.field_strides, column.z));
  unsigned at_border = 0;
  for (int z = column.z; z < column.end; z += kBatch) {
    FastCell cells[kBatch];
    const unsigned inside = find_cells(p, column, z, u, step, cells);
    u += kBatch * static_cast<std::int64_t>(p.field_strides.z);
    at_border |= (column.mine(z, kBatch) & ~inside) << (z - column.z);
    body(z, cells, inside);
  }
  return at_border;
}

/// Calls body(z, cell) for those of the column's voxels in `which`, a bit each, whose cells have
/// some corner that is a voxel, or whose coordinate is NaN: then the cell's fractions are.
template <class Body>
__device__ __forceinline__ void for_each_with_corners(
    const FastPass& p, const FastColumn& column, int step, unsigned which, const Body& body) {
#pragma unroll 1
  for (; which != 0; which &= which - 1) {
    const int z = column.z + __ffs(static_cast<int>(which)) - 1;
    FastCell cells[1];
    const float* u = p.field + column.offset(p.field_strides, z);
    find_cells(p, column, z, u, step, cells);
    bool is_number = true;
    for (int a = 0; a < 3; ++a) {
      const double index = column.index(a, p.first[2] + z, u[a]);
      is_number &= index == index;
    }
    for (float& fraction : cells[0].fraction) fraction = is_number ? fraction : NAN;
    if (!is_number || corners_inside(p, cells[0]) != 0) body(z, cells[0]);
  }
}

/// The four lines of an image on which a cell's corners lie. With three components a thread has
/// more to keep, so it keeps the distances from the first line to the others.
template <int step> struct Lines {
  const float* of[4];

  __device__ Lines(const float* plane, const FastStrides& s)
      : of{opaque(plane), opaque(plane + s.y), opaque(plane + s.z), opaque(plane + s.z + s.y)} {}
  __device__ const float* at(int line, int offset) const { return of[line] + offset; }
};
template <> struct Lines<3> {
  const float* first;
  int y, z;

  __device__ Lines(const float* plane, const FastStrides& s)
      : first(opaque(plane)), y(s.y), z(s.z) {}
  __device__ const float* at(int line, int offset) const {
    return first + (offset + (line % 2 ? y : 0) + (line / 2 ? z : 0));
  }
};

/// The corners of a cell by x, y, z, in one channel.
struct Corners {
  float v[8];
};

/// `step` is the distance of voxels along x.
template <int step>
__device__ __forceinline__ Corners load_corners(const Lines<step>& lines, int offset) {
  Corners k;
#pragma unroll
  for (int line = 0; line < 4; ++line) {
    const float* first = lines.at(line, offset);
    k.v[2 * line] = __ldg(first);
    k.v[2 * line + 1] = __ldg(first + step);
  }
  return k;
}

/// Loads the corners, and 0 for those that are no voxels.
template <int step>
__device__ __forceinline__ Corners load_corners_inside(
    const FastPass& p, const FastCell& cell, const float* plane) {
  const unsigned which = corners_inside(p, cell);
  const Lines<step> lines(plane, p.image_strides);
  const int offset = which == 0 ? 0 : cell.place(p.image_strides, step);
  Corners k;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    k.v[i] = which >> i & 1u ? __ldg(lines.at(i / 2, offset) + (i % 2 ? step : 0)) : 0.0f;
  }
  return k;
}

__device__ __forceinline__ float mix(float f, float a, float b) { return fmaf(f, b - a, a); }

/// Returns the number of floats that the output has of the warp's row of vectors.
__device__ __forceinline__ int floats_of_row(const FastPass& p) {
  const bool has_row = static_cast<int>(blockIdx.y) * kTileY + warp() < p.out[1];
  return has_row ? 3 * min(kTileX, p.out[0] - row_x()) : 0;
}

}  // namespace similis::warp_internal
