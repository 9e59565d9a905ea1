// SPDX-License-Identifier: Apache-2.0
// A pass in the form that kernels take, and the parts they share: the voxels of a thread, and loads
// and stores of fields, transforms and elements of any dtype.
#pragma once

#include <cstdint>

#include "src/gpu/cuda/blocks.h"
#include "src/gpu/cuda/view.h"
#include "src/warp/formula.h"

namespace similis::warp_internal {

// A warp takes 32 neighbours along x, so that its gathers share cache lines; a thread takes voxels
// behind each other, whose loads are in flight together.
constexpr int kTileX = 32, kTileY = 8, kTileZ = 4;
constexpr int kThreads = kTileX * kTileY;

/// Number of blocks of a kernel whose threads take items in turn.
inline unsigned blocks_for_items(std::int64_t items) {
  return gpu::blocks_for_items(items, kThreads, 1 << 16);
}

/// The sums of one block, for the gradients to A and S: see MatrixSums.
constexpr int kPositionSums = 12, kFieldSums = 9, kSums = kPositionSums + kFieldSums;

/// Sums of the image's gradient as integers, so that their order does not matter: Σ v is (high +
/// low·2⁻³²)/scale, with scale from the upstream's largest magnitude.
struct FixedPoint {
  std::int64_t* high = nullptr;            // dense; null if sums are floating point
  std::int64_t* low = nullptr;             // for f64 only
  const std::uint64_t* largest = nullptr;  // bits of a double
  int headroom = 0;                        // log2 of the number of terms of a sum, at most
};

/// An image that has a part of the axis along z, or y in 2D.
struct ImagePart {
  int rows = 0;  // 0: it has all, and all cells count
  int start = 0, first_cell = 0, end_cell = 0;
};

struct GpuPass {
  Axis axes[3];
  int rank = 3;
  std::int64_t channels = 1;
  int images = 1;  // number that a block loops over, since they share a field
  Outside padding = Outside::zeros;
  bool align_corners = true;
  gpu::View image, upstream, output, addend, weight, field, field_gradient;
  gpu::View image_sums;  // sums of the image's gradient: f32, or f64 for f64
  FixedPoint fixed;
  const Transform* transforms = nullptr;  // one for each image
  bool has_full_s = false;                // S is not the identity
  bool is_nearest = false;
  ImagePart part;
  double* sums = nullptr;  // [kSums][sum_rows]: of each image and block of it
  std::int64_t sum_rows = 0;
  double factor = 1, field_factor = 1;
  double background = 0, smallest_label = 0;

  unsigned tiles_x = 1, tiles_y = 1, tiles = 1;  // number of tiles of one image
  unsigned blocks = 1;  // number of blocks of one image, or of the images that share a field
};

/// The column of voxels of one thread.
struct Column {
  int x, y, z;
  bool is_inside;

  __device__ Column(const GpuPass& p, unsigned tile) {
    const unsigned tx = tile % p.tiles_x, rest = tile / p.tiles_x;
    const unsigned ty = rest % p.tiles_y, tz = rest / p.tiles_y;
    x = static_cast<int>(tx) * kTileX + static_cast<int>(threadIdx.x % kTileX);
    y = static_cast<int>(ty) * kTileY + static_cast<int>(threadIdx.x / kTileX);
    z = static_cast<int>(tz) * kTileZ;
    is_inside = x < p.axes[0].out_extent && y < p.axes[1].out_extent;
  }
};

template <class T>
__device__ __forceinline__ T load_as(const gpu::View& view, std::int64_t offset) {
  if constexpr (sizeof(T) == 8) {
    return view.load(offset);
  } else {
    return view.load_f32(offset);
  }
}

// Stores a value rounded once, by way of no wider type than the value has.
template <class T>
__device__ __forceinline__ void store_as(const gpu::View& view, std::int64_t offset, T value) {
  if (view.dtype == DType::f32) {
    static_cast<float*>(view.data)[offset] = static_cast<float>(value);
  } else if constexpr (sizeof(T) == 4) {
    switch (view.dtype) {
      case DType::f16: static_cast<F16*>(view.data)[offset] = gpu::rounded<F16>(value); break;
      case DType::bf16: static_cast<BF16*>(view.data)[offset] = gpu::rounded<BF16>(value); break;
      default: static_cast<double*>(view.data)[offset] = value;
    }
  } else {
    view.store(offset, value);
  }
}

/// The field at one voxel, as f32 if that holds every bit of it, so that loads can wait in few
/// registers.
struct FieldVector {
  float narrow[3];
};

__device__ __forceinline__ std::int64_t field_offset(
    const gpu::View& field, std::int64_t n, int z, int y, int x) {
  return n * field.strides[0] + z * field.strides[1] + y * field.strides[2] + x * field.strides[3];
}

__device__ __forceinline__ void load_field(
    const GpuPass& p, std::int64_t offset, FieldVector* out) {
  if (p.field.data == nullptr || p.field.dtype == DType::f64) return;
  for (int j = 0; j < 3; ++j) {
    if (j < p.rank) out->narrow[j] = p.field.load_f32(offset + j * p.field.strides[4]);
  }
}

__device__ __forceinline__ double field_component(
    const GpuPass& p, std::int64_t offset, const FieldVector& loaded, int j) {
  if (p.field.dtype == DType::f64) return p.field.load(offset + j * p.field.strides[4]);
  return loaded.narrow[j];
}

/// The part that a column's indices have in common: m·(gx, gy, 0, 1) of each axis.
struct ColumnBase {
  double of[3];

  __device__ ColumnBase(const GpuPass& p, const Transform& t, int x, int y) {
    const double gx = p.axes[0].first + x, gy = p.axes[1].first + y;
    for (int a = 0; a < 3; ++a) of[a] = fma(t.m[a][0], gx, fma(t.m[a][1], gy, t.m[a][3]));
  }
};

/// Computes the index along each axis, before padding.
__device__ __forceinline__ void find_index(const GpuPass& p, const Transform& t,
    const ColumnBase& base, int z, std::int64_t offset, const FieldVector& loaded,
    double (&index)[3]) {
  const double gz = p.axes[2].first + z;
  for (int a = 0; a < 3; ++a) index[a] = fma(t.m[a][2], gz, base.of[a]);
  if (p.field.data == nullptr) return;
  double u[3] = {0, 0, 0};
  for (int j = 0; j < 3; ++j) {
    if (j < p.rank) u[j] = field_component(p, offset, loaded, j);
  }
  for (int a = 0; a < 3; ++a) {
    if (!p.has_full_s) {
      if (a < p.rank) index[a] = fma(t.s[a][a], u[a], index[a]);
      continue;
    }
    for (int j = 0; j < 3; ++j) {
      if (j < p.rank) index[a] = fma(t.s[a][j], u[j], index[a]);
    }
  }
}

/// The cell of linear interpolation, if all its corners are voxels and the padding does not move
/// it.
template <class T> struct Cell {
  int voxel[3];
  T fraction[3];
};

// Counts a voxel along the last of the axes from the image's first row. Returns whether its cell
// counts and the image has it and as many rows behind it.
__device__ __forceinline__ bool keep_row(const GpuPass& p, int cell, int behind, int (&voxel)[3]) {
  const int row = (p.rank == 3 ? voxel[2] : voxel[1]) - p.part.start;
  (p.rank == 3 ? voxel[2] : voxel[1]) = row;
  return cell >= p.part.first_cell && cell < p.part.end_cell && row >= 0 &&
         row + behind < p.part.rows;
}

template <class T>
__device__ __forceinline__ bool find_cell(
    const GpuPass& p, const double (&index)[3], Cell<T>* cell) {
  bool is_inside = true;
  for (int a = 0; a < 3; ++a) {
    if (a >= p.rank) {
      cell->voxel[a] = 0;
      cell->fraction[a] = 0;
      continue;
    }
#if defined(__CUDA_ARCH__)
    // Below 2⁵¹ the sum's last bits are the floor: this needs no conversions, which cost 4 times as
    // much as an addition.
    const double shifted = __dadd_rd(index[a], 0x1.8p52);
    const auto bits = bits_as<std::uint64_t>(shifted);
    const double first = shifted - 0x1.8p52;
    const auto low = static_cast<std::uint32_t>(bits),
               high = static_cast<std::uint32_t>(bits >> 32);
    is_inside &= high == 0x43380000u && low < static_cast<std::uint32_t>(p.axes[a].whole - 1);
    cell->voxel[a] = static_cast<int>(low);
#else
    const double first = floor(index[a]);
    const bool is_in_axis = first >= 0 && first < static_cast<double>(p.axes[a].whole - 1);
    is_inside &= is_in_axis;
    cell->voxel[a] = is_in_axis ? static_cast<int>(first) : 0;
#endif
    if (p.padding != Outside::zeros) is_inside &= index[a] > 0;  // no slope at the border itself
    cell->fraction[a] = static_cast<T>(index[a] - first);
  }
  if (p.part.rows != 0) {
    is_inside &= keep_row(p, p.rank == 3 ? cell->voxel[2] : cell->voxel[1], 1, cell->voxel);
  }
  return is_inside;
}

/// Finds the voxel next to an index between the image's first and last voxels, where no padding
/// moves it. Returns whether it lies there.
__device__ __forceinline__ bool find_nearest(
    const GpuPass& p, const double (&index)[3], int (&voxel)[3]) {
  bool is_inside = true;
  for (int a = 0; a < 3; ++a) {
    voxel[a] = 0;
    if (a >= p.rank) continue;
    const bool is_in_axis = index[a] >= 0 && index[a] <= static_cast<double>(p.axes[a].whole - 1);
    is_inside &= is_in_axis;
    voxel[a] = is_in_axis ? static_cast<int>(rint(index[a])) : 0;
  }
  if (p.part.rows != 0) {
    const double along = p.rank == 3 ? index[2] : index[1];
    is_inside &= keep_row(p, is_inside ? static_cast<int>(along) : 0, 0, voxel);
  }
  return is_inside;
}

// The nearest voxel as taps of linear interpolation, the second of which is none.
template <class T> __device__ __forceinline__ Taps<T, 2> nearest_taps(double index, int extent) {
  const Taps<T, 1> one = taps<T, 1>(index, extent);
  return {
      .voxel = {one.voxel[0], kNoVoxel}, .weight = {one.weight[0], 0}, .slope = {one.slope[0], 0}};
}

/// Taps along each axis with the padding folded in, and the derivatives of that.
template <class T, int count>
__device__ __forceinline__ void find_taps(
    const GpuPass& p, const double (&index)[3], Taps<T, count> (&axis)[3], T (&slope)[3]) {
  for (int a = 0; a < 3; ++a) {
    if (a >= p.rank) {
      axis[a] = flat_taps<T, count>();
      slope[a] = 0;
      continue;
    }
    const Place placed =
        place(index[a], static_cast<double>(p.axes[a].whole - 1), p.padding, p.align_corners);
    const int extent = static_cast<int>(p.axes[a].whole);
    axis[a] = taps<T, count>(placed.index, extent);
    if constexpr (count == 2) {
      if (p.is_nearest) axis[a] = nearest_taps<T>(placed.index, extent);
    }
    if (a > 0 && p.part.rows != 0 && a == p.rank - 1) keep_part(p.axes[a], placed.index, &axis[a]);
    slope[a] = static_cast<T>(placed.slope);
  }
}

}  // namespace similis::warp_internal
