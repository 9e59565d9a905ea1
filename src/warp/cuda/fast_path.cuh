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
#include "src/warp/cuda/opaque.cuh"

namespace similis::warp_internal {

constexpr int kBatch = 4;

__device__ inline int lane() { return static_cast<int>(threadIdx.x % kTileX); }
__device__ inline int warp() { return static_cast<int>(threadIdx.x / kTileX); }
__device__ inline int row_x() { return static_cast<int>(blockIdx.x) * kTileX; }

/// FastLayout and the image's type, for the compiler. Halves have kernels of their own, and so has
/// the scatter of volumes with zeros outside, since those of f32 have no register to spare.
struct Volume {
  static constexpr int rank = 3, step = 1;
  static constexpr bool is_half = false, may_pad = true, is_part = false, skips_zero = false;
  static constexpr bool folds = false, masks = false, is_one_batch = false, reloads = false;
};
struct Vectors {
  static constexpr int rank = 3, step = 3;
  static constexpr bool is_half = false, may_pad = false, is_part = false, skips_zero = false;
  static constexpr bool folds = false, masks = false, is_one_batch = false, reloads = false;
};
struct Picture {
  static constexpr int rank = 2, step = 1;
  static constexpr bool is_half = false, may_pad = true, is_part = false, skips_zero = false;
  static constexpr bool folds = false, masks = false, is_one_batch = false, reloads = false;
};
template <class L> struct Half : L { static constexpr bool is_half = true; };
/// For images that have rows of a longer axis, and results that are added to: the tests of such
/// calls at the border would cost others 4 % of a step.
template <class L> struct Part : L { static constexpr bool is_part = true; };
template <class L> struct Unpadded : L { static constexpr bool may_pad = false; };
/// For padded images: an index of exactly 0 has no slope, so that its cell is one at the border.
template <class L> struct Padded : L { static constexpr bool skips_zero = true; };
/// Cells that are not inside get the padding where they are found, not at the border.
template <class L> struct Folding : L { static constexpr bool folds = true; };
/// Cells that the image has some corners of are taken with others, not at the border.
template <class L> struct Masking : L { static constexpr bool masks = true; };
/// Threads take kBatch voxels: nothing of the next ones stays in registers while channels pass.
template <class L> struct OneBatch : L { static constexpr bool is_one_batch = true; };

/// The factors of u are read from the parameters at each use, which leaves 6 registers for loads.
/// Values of f32 have enough without it: exponentiate took 5 % longer with it.
template <class L> struct Reloading : L { static constexpr bool reloads = true; };

/// A thread's column of voxels: along z, or along y in 2D.
template <class L> struct FastColumn {
  static constexpr int rank = L::rank;
  int x, y, z, end;  // the column ends before `end` along z; y is 0 in 2D
  int n, c;          // the image, and the group of channels
  bool is_mine;      // it repeats no other column
  double base[rank], by_z[rank], by_u[rank];

  /// Warps take columns beside each other along y, or behind each other in 2D.
  __device__ explicit FastColumn(const FastPass& p)
      : FastColumn(p, rank == 3 ? static_cast<int>(blockIdx.y) * kTileY + warp() : 0,
            rank == 3 ? 1 : kTileY, rank == 3 ? 0 : warp()) {}
  /// The `own`-th of the block's `columns` behind each other.
  __device__ FastColumn(const FastPass& p, int y_, int columns, int own) : y(y_) {
    x = row_x() + lane();
    const int plane = static_cast<int>(blockIdx.z) / p.tiles_z;
    n = plane / p.block_channels;
    c = plane - n * p.block_channels;
    const int tile = static_cast<int>(blockIdx.z) - plane * p.tiles_z;
    z = (tile * columns + own) * p.depth;
    is_mine = x < p.out[0] && y < p.out[1] && z < p.out[2];
    x = min(x, p.out[0] - 1);
    y = min(y, p.out[1] - 1);
    z = min(z, p.out[2] - 1);
    end = min(z + p.depth, p.out[2]);
    place(p);
  }
  __device__ __forceinline__ void place(const FastPass& p) {
    if (p.transforms == nullptr) {  // in the memory of parameters, which needs loads of its own
      place(p, p.transform);
    } else {
      place(p, p.transforms[n]);
    }
  }
  /// Finds base and by_z anew, so that no register keeps them while the loads before are in flight.
  __device__ __forceinline__ void place_again(const FastPass& p) {
    x = recomputed(x);
    y = recomputed(y);
    place(p);
  }
  __device__ __forceinline__ void place(const FastPass& p, const Transform& t) {
    const double gx = p.first[0] + x, gy = p.first[1] + y;
#pragma unroll
    for (int a = 0; a < rank; ++a) {
      // The same as in ColumnBase and find_index().
      base[a] = fma(t.m[a][0], gx, rank == 3 ? fma(t.m[a][1], gy, t.m[a][3]) : t.m[a][3]);
      by_z[a] = t.m[a][rank - 1];
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
  __device__ double index(const FastPass& p, int a, double gz, float u) const {
    const double factor = L::reloads ? p.transform.s[a][a] : by_u[a];
    return fma(factor, static_cast<double>(u), fma(by_z[a], gz, base[a]));
  }
  __device__ double position(const FastPass& p, int at_z) const { return p.first[rank - 1] + at_z; }
  /// Returns which of `count` voxels from z on are mine, a bit each.
  __device__ unsigned mine(int at_z, int count) const {
    return is_mine ? (1u << min(count, end - at_z)) - 1 : 0;
  }
};

/// Returns whether split() found the voxel, and no NaN or far index.
__device__ __forceinline__ bool is_near(int voxel) {
  constexpr int kFar = kMostFastVoxels;
  return voxel >= -kFar && voxel < kFar;
}

/// The cell of one voxel.
template <class L> struct FastCell {
  int offset;  // of its first corner; 0 if there is no cell
  float fraction[L::rank];
  int voxel[L::rank];

  /// Returns the offset of the first corner, which a voxel at the border may lack.
  __device__ int place(const FastStrides& s) const {
    if constexpr (L::rank == 2) return voxel[1] * s.z + voxel[0];
    return voxel[L::rank - 1] * s.z + voxel[1] * s.y + voxel[0] * L::step;
  }
};

// Returns the floor of an index, far from any voxel if that is not a number, and the fraction above
// it. If the double's last bit is 2⁻³², its high word counts voxels and its low one is the
// fraction: this needs no conversions, which cost 4 times as much as an addition. `counter` is that
// of the index's axis.
__device__ __forceinline__ int split(double index, float* fraction, int counter = kCounterWord) {
#if defined(__CUDA_ARCH__)
  constexpr double kCounter = 0x1.8p20;
  const double shifted = __dadd_rd(index, kCounter);
  const auto low = static_cast<unsigned>(__double2loint(shifted));
  *fraction = __uint_as_float(__funnelshift_r(low, 0x7f, 9)) - 1.0f;
  return __double2hiint(shifted) - counter;
#else
  const double first = floor(index);
  const bool is_near = fabs(first) < static_cast<double>(kMostFastVoxels);
  *fraction = is_near ? static_cast<float>(index - first) : 0;
  const int voxel = is_near ? static_cast<int>(first) : static_cast<int>(kMostFastVoxels);
  return voxel - (counter - kCounterWord);
#endif
}

template <class L> __device__ __forceinline__ int counter_of(const FastPass& p, int axis) {
  return axis == L::rank - 1 ? p.rows.counter : kCounterWord;
}

// The field of a call without one, whose strides are 0.
__device__ constexpr float kNoField[3] = {0, 0, 0};

/// Returns the field at the column's voxel at z.
template <class L>
__device__ __forceinline__ const float* field_at(
    const FastPass& p, const FastColumn<L>& column, int z) {
  return (p.field == nullptr ? kNoField : p.field) + column.offset(p.field_strides, z);
}

/// Loads the field at voxels from z on; u is at the first. Beyond the column its last voxel is
/// repeated.
template <class L, int count>
__device__ __forceinline__ void load_field(const FastPass& p, const FastColumn<L>& column, int z,
    const float* u, float (&loaded)[count][L::rank]) {
#pragma unroll
  for (int d = 0; d < count; ++d) {
#pragma unroll
    for (int a = 0; a < L::rank; ++a) loaded[d][a] = __ldg(u + a);
    if (d + 1 < count && z + d + 1 < column.end) u += p.field_strides.z;
  }
}

/// Finds the cell at gz, and returns whether there is one; the caller computes its offset.
template <class L>
__device__ __forceinline__ bool find_cell(const FastPass& p, const FastColumn<L>& column, double gz,
    const float (&u)[L::rank], FastCell<L>* cell) {
  bool is_inside = true;
#pragma unroll
  for (int a = 0; a < L::rank; ++a) {
    cell->voxel[a] = split(column.index(p, a, gz, u[a]), &cell->fraction[a], counter_of<L>(p, a));
    is_inside &= static_cast<unsigned>(cell->voxel[a]) < static_cast<unsigned>(p.last[a]);
    if constexpr (L::skips_zero) {
      const int first = counter_of<L>(p, a) - kCounterWord;  // voxels count from this one
      is_inside &= ((cell->voxel[a] + first) | __float_as_int(cell->fraction[a])) != 0;
    }
  }
  return is_inside;
}

/// The cells of a batch at the border, for kernels that take these with others.
template <class L> struct Rim {
  static constexpr unsigned all_corners = L::rank == 3 ? 0xff : 0xf;
  static constexpr unsigned all = all_corners * 0x01010101u;
  // Slopes of folded indices by the indices, a bit for each axis of each voxel. Others are 1.
  unsigned zero = 0, negative = 0;
  unsigned corners = all;  // those that the image has, 8 bits for each voxel
  unsigned outside = 0;    // voxels that no corner is near of, a bit each

  __device__ __forceinline__ void set_corners(int voxel, unsigned which) {
    corners &= ~(all_corners << 8 * voxel) | which << 8 * voxel;
    if (which == 0) outside |= 1u << voxel;
  }
  __device__ __forceinline__ unsigned corners_of(int voxel) const {
    return corners >> 8 * voxel & all_corners;
  }

  __device__ __forceinline__ void set(int voxel, int axis, int slope) {
    const unsigned bit = 1u << (voxel * L::rank + axis);
    if (slope == 0) zero |= bit;
    if (slope < 0) negative |= bit;
  }
  __device__ __forceinline__ float of(int voxel, int axis) const {
    const unsigned bit = 1u << (voxel * L::rank + axis);
    return zero & bit ? 0.0f : negative & bit ? -1.0f : 1.0f;
  }
  __device__ __forceinline__ bool any() const { return (zero | negative) != 0; }
};

/// The slope of folded indices is 1, 0 or -1.
struct FoldedAxis {
  int voxel;
  float fraction;
  int slope;
  bool is_known;  // the rest holds
};

/// Folds the padding into a voxel and the fraction above it. Not known are cells that are mirrored
/// twice, far ones, and those whose slope depends on digits of the index that the fraction lacks.
__device__ __forceinline__ FoldedAxis fold(
    int voxel, float fraction, int last, Outside padding, bool align_corners) {
  constexpr int kFar = kMostFastVoxels;  // split() counts no farther
  const bool is_low = voxel < 0, is_whole = fraction == 0;
  FoldedAxis to{voxel, fraction, 1, true};
  if (static_cast<unsigned>(voxel) < static_cast<unsigned>(last)) {
    to.is_known = voxel != 0 || !is_whole;
    return to;
  }
  if (voxel < -kFar || voxel >= kFar) {
    to.is_known = false;
    return to;
  }
  bool is_at_end = true;
  if (padding == Outside::reflection) {
    to.voxel = (is_low ? -1 : 2 * last - 1) - voxel;
    if (!align_corners) to.voxel += is_low ? -1 : 1;
    to.fraction = 1 - fraction;
    to.slope = -1;
    is_at_end = !align_corners && voxel == (is_low ? -1 : last);
    to.is_known =
        is_at_end || (!is_whole && static_cast<unsigned>(to.voxel) < static_cast<unsigned>(last));
  }
  if (is_at_end) {
    to.voxel = is_low ? 0 : last - 1;
    to.fraction = is_low ? 0 : 1;
    to.slope = 0;
  }
  return to;
}

/// Returns a cell's voxel along an axis, which counts from the first row, on the whole axis.
template <class L> __device__ __forceinline__ int first_voxel(const FastPass& p, int axis) {
  return counter_of<L>(p, axis) - kCounterWord;
}
template <class L> __device__ __forceinline__ int last_voxel(const FastPass& p, int axis) {
  return axis == L::rank - 1 ? p.rows.whole_last : p.last[axis];
}

/// Folds the padding into the cell of voxel `d`. Returns whether the cell is known and inside; else
/// the voxel is one at the border.
template <class L>
__device__ __forceinline__ bool fold_cell(
    const FastPass& p, int d, FastCell<L>* cell, Rim<L>* rim) {
  if (p.padding == Outside::zeros) return false;
  bool is_inside = true;
#pragma unroll
  for (int a = 0; a < L::rank; ++a) {
    const int first = first_voxel<L>(p, a);
    const FoldedAxis to = fold(
        cell->voxel[a] + first, cell->fraction[a], last_voxel<L>(p, a), p.padding, p.align_corners);
    cell->voxel[a] = to.voxel - first;
    cell->fraction[a] = to.fraction;
    rim->set(d, a, to.slope);
    is_inside &=
        to.is_known && static_cast<unsigned>(cell->voxel[a]) < static_cast<unsigned>(p.last[a]);
  }
  return is_inside;
}

/// Returns which of a cell's corners are voxels, a bit each as in Corners.
template <class L>
__device__ __forceinline__ unsigned corners_inside(const FastPass& p, const FastCell<L>& cell) {
  unsigned which = L::rank == 3 ? 0xff : 0xf;
#pragma unroll
  for (int a = 0; a < L::rank; ++a) {
    constexpr unsigned kUpper[3] = {0xaa, 0xcc, 0xf0};
    const auto voxel = static_cast<unsigned>(cell.voxel[a]);
    const auto last = static_cast<unsigned>(p.last[a]);
    if (voxel > last) which &= kUpper[a];
    if (voxel + 1 > last) which &= ~kUpper[a];
  }
  return which;
}

template <class L> __device__ __forceinline__ bool is_counted(const FastPass& p, int voxel) {
  return static_cast<unsigned>(voxel - p.rows.first_cell) < p.rows.cells;
}

/// Finds the corners that the image has of a cell which is not inside. Returns whether it has any.
template <class L>
__device__ __forceinline__ bool mask_cell(
    const FastPass& p, int d, const FastCell<L>& cell, Rim<L>* rim) {
  bool is_known = true;
#pragma unroll
  for (int a = 0; a < L::rank; ++a) is_known &= is_near(cell.voxel[a]);
  const bool counts = is_known && is_counted<L>(p, cell.voxel[L::rank - 1]);
  const unsigned which = counts ? corners_inside<L>(p, cell) : 0;
  rim->set_corners(d, which);
  if (!is_known) rim->outside &= ~(1u << d);
  return which != 0;
}

/// Finds the cells of voxels from z on. Returns which voxels have one, a bit each.
template <class L, int count>
__device__ __forceinline__ unsigned find_cells(const FastPass& p, const FastColumn<L>& column,
    int z, const float* u, FastCell<L> (&cells)[count], Rim<L>* rim) {
  float loaded[count][L::rank];
  load_field<L>(p, column, z, u, loaded);
  const double gz = column.position(p, z);
  unsigned inside = 0;
#pragma unroll
  for (int d = 0; d < count; ++d) {
    bool is_inside = find_cell<L>(p, column, gz + d, loaded[d], &cells[d]);
    if constexpr (L::folds) {
      if (!is_inside) is_inside = fold_cell<L>(p, d, &cells[d], rim);
    }
    if constexpr (L::masks) {
      if (!is_inside) is_inside = mask_cell<L>(p, d, cells[d], rim);
    }
    cells[d].offset = is_inside ? cells[d].place(p.image_strides) : 0;
    inside |= is_inside ? 1u << d : 0;
  }
  return inside;
}

/// Returns whether a cell, counted from the first row, lies in other rows of the whole image, where
/// no padding moves it: its index along x and y does not matter then.
template <class L> __device__ __forceinline__ bool is_in_other_rows(const FastPass& p, int voxel) {
  const int cell = voxel + p.rows.counter - kCounterWord;
  return static_cast<unsigned>(cell) < static_cast<unsigned>(p.rows.whole_last) &&
         !is_counted<L>(p, voxel);
}

/// Returns whether nothing was noted of a batch of rows from z on, so that it is left out. Notes
/// stand for 8 rows or 4.
__device__ __forceinline__ bool is_left_out(const FastPass& p, int z) {
  if (p.noted == nullptr) return false;
  constexpr int kMost = 8;
  const float* const rows = p.noted + 2 * static_cast<std::int64_t>(z / kMost * kMost);
  return __ldg(rows) == 0 && __ldg(rows + 2 * (z % kMost)) == 0;
}

/// Returns whether nothing was noted of the rows of the warp's columns. Every lane calls it, and
/// looks at one note: a block that finds none ends after one load.
template <class L> __device__ __forceinline__ bool is_left_out(const FastPass& p) {
  if (p.noted == nullptr) return false;
  constexpr int kMost = 8;
  const int tile = static_cast<int>(blockIdx.z) % p.tiles_z;
  const int z = (L::rank == 3 ? tile : tile * kTileY + warp()) * p.depth;
  const int row = z / kMost * kMost + lane() * kBatch;
  const bool has_note =
      row < min(z + p.depth, p.out[2]) && __ldg(p.noted + 2 * static_cast<std::int64_t>(row)) != 0;
  return gpu::first_lane(has_note) == gpu::kSubgroup;
}

/// Calls body(z, cells, inside, rim) for the column's voxels, kBatch at a time. Returns those at
/// the border, a bit each.
template <class L, bool places_each = false, class Body>
__device__ __forceinline__ unsigned for_each_batch(
    const FastPass& p, const FastColumn<L>& column, const Body& body) {
  const float* u = opaque(field_at<L>(p, column, column.z));
  unsigned at_border = 0;
  for (int z = column.z; z < column.end; z = L::is_one_batch ? column.end : z + kBatch) {
    if constexpr (L::is_part) {
      if (is_left_out(p, z)) {
        u += kBatch * static_cast<std::int64_t>(p.field_strides.z);
        continue;
      }
    }
    FastCell<L> cells[kBatch];
    Rim<L> rim;
    FastColumn<L> placed = column;
    if constexpr (places_each) placed.place_again(p);
    const unsigned inside = find_cells<L>(p, placed, z, u, cells, &rim);
    u += kBatch * static_cast<std::int64_t>(p.field_strides.z);
    unsigned left = column.mine(z, kBatch) & ~(inside | rim.outside);
    if constexpr (L::is_part) {
#pragma unroll
      for (int d = 0; d < kBatch; ++d) {
        const bool is_elsewhere = is_in_other_rows<L>(p, cells[d].voxel[L::rank - 1]);
        if (p.has_other_rows && is_elsewhere) left &= ~(1u << d);
      }
    }
    at_border |= left << (z - column.z);
    body(z, cells, inside, rim);
  }
  return at_border;
}

/// Calls body.template operator()<E>() with the type of the image's elements.
template <class L, class Body>
__device__ __forceinline__ auto with_element_type(const FastPass& p, const Body& body) {
  if constexpr (!L::is_half) {
    return body(float());
  } else {
    return p.dtype == DType::f16 ? body(F16()) : body(BF16());
  }
}

__device__ __forceinline__ float load_element(const float* at) { return __ldg(at); }
template <class E> __device__ __forceinline__ E load_element(const E* at) {
  return {__ldg(&at->bits)};
}
template <class E> __device__ __forceinline__ float load_float(const E* at) {
  return gpu::to_float(load_element(at));
}
__device__ __forceinline__ void store_float(float value, float* to) { *to = value; }
template <class E> __device__ __forceinline__ void store_float(float value, E* to) {
  *to = gpu::rounded<E>(value);
}

/// The channels of a block.
template <class L>
__device__ __forceinline__ int first_channel(const FastColumn<L>& column, const FastPass& p) {
  return column.c * p.group;
}
template <class L>
__device__ __forceinline__ int end_channel(const FastColumn<L>& column, const FastPass& p) {
  return min((column.c + 1) * p.group, p.channels);
}

/// Returns the number of floats that the output has of the warp's row of vectors of 3.
__device__ __forceinline__ int floats_of_row(const FastPass& p) {
  const bool has_row = static_cast<int>(blockIdx.y) * kTileY + warp() < p.out[1];
  return has_row ? 3 * min(kTileX, p.out[0] - row_x()) : 0;
}

}  // namespace similis::warp_internal
