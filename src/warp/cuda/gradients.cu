// SPDX-License-Identifier: Apache-2.0
// Gradients of sampling on the GPU.
//
//   index ─> cell ─> 8 gathers ─> slopes · upstream ─> the field's gradient, sums for A and S
//                 └─> weights · upstream ─> red.add to the image
//
// Neighbours along x share corners: a lane hands its sums for right corners to the next lane if
// that lane's left corners are the same voxels, so that a smooth field needs about half of the
// additions. Voxels at the border, other modes and fixed point take the general way, which is not
// inlined.
#include "src/warp/cuda/cell.cuh"
#include "src/warp/cuda/kernels.h"

namespace similis::warp_internal {
namespace {

__device__ __forceinline__ void atomic_add(std::int64_t* to, std::int64_t value) {
  atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(value));
}

// Adds to one voxel of the image's gradient, in any order.
template <class T>
__device__ void add_to_voxel(
    const GpuPass& p, std::int64_t n, std::int64_t c, int x, int y, int z, T value, double scale) {
  const gpu::View& sums = p.image_sums;
  const std::int64_t plane = sums.plane(n, c);
  if (p.fixed.high == nullptr || !isfinite(value)) {
    atomicAdd(static_cast<T*>(sums.data) + plane + sums.at(z, y, x), value);
    return;
  }
  const Axis* axes = p.axes;
  const std::int64_t image = sums.strides[0] == 0 ? 0 : n;
  const std::int64_t at =
      (((image * p.channels + c) * axes[2].extent + z) * axes[1].extent + y) * axes[0].extent + x;
  const double scaled = static_cast<double>(value) * scale, high = rint(scaled);
  atomic_add(p.fixed.high + at, static_cast<std::int64_t>(high));
  if (p.fixed.low != nullptr) {
    atomic_add(p.fixed.low + at, static_cast<std::int64_t>(rint((scaled - high) * kLowUnits)));
  }
}

template <class T, int count>
__device__ void scatter_taps(const GpuPass& p, const Taps<T, count> (&axis)[3], std::int64_t n,
    std::int64_t c, T upstream, double scale) {
  const int planes = p.rank == 2 ? 1 : count;
  for (int kz = 0; kz < planes; ++kz) {
    for (int ky = 0; ky < count; ++ky) {
      for (int kx = 0; kx < count; ++kx) {
        const int x = axis[0].voxel[kx], y = axis[1].voxel[ky], z = axis[2].voxel[kz];
        if (x == kNoVoxel || y == kNoVoxel || z == kNoVoxel) continue;
        const T weight = axis[2].weight[kz] * axis[1].weight[ky] * axis[0].weight[kx];
        add_to_voxel(p, n, c, x, y, z, upstream * weight, scale);
      }
    }
  }
}

// Adds to the corners of a cell that lies inside; every lane of the warp calls it, with upstream 0
// and is_inside false if it has none.
template <class T>
__device__ __forceinline__ void scatter_cells(
    const GpuPass& p, const Cell<T>& cell, std::int64_t plane, T upstream, bool is_inside) {
  const gpu::View& sums = p.image_sums;
  const std::int64_t sx = sums.strides[4], sy = sums.strides[3], sz = sums.strides[2];
  const std::int64_t first =
      is_inside ? plane + sums.at(cell.voxel[2], cell.voxel[1], cell.voxel[0]) : -1;
  const T fx = cell.fraction[0], fy = cell.fraction[1], fz = cell.fraction[2];
  const T right = upstream * fx, left = upstream - right;
  T* const out = static_cast<T*>(sums.data) + first;
#if defined(__HIPCC__)
  constexpr bool gives = false;
#else
  constexpr unsigned kAll = 0xffffffffu;
  const unsigned lane = threadIdx.x % gpu::kWarp;
  const std::int64_t before = __shfl_up_sync(kAll, first, 1);
  const bool takes = lane > 0 && is_inside && before >= 0 && before + sx == first;
  const bool gives = __shfl_down_sync(kAll, takes ? 1 : 0, 1) != 0 && lane < gpu::kWarp - 1;
#endif
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (k >= 2 && p.rank == 2) break;
    const T wy = k % 2 ? fy : 1 - fy, wz = p.rank == 2 ? T{1} : k / 2 ? fz : 1 - fz;
    const T weight = wy * wz;
    T to_left = left * weight;
    const T to_right = right * weight;
#if !defined(__HIPCC__)
    const T handed = __shfl_up_sync(kAll, to_right, 1);
    if (takes) to_left += handed;
#endif
    if (!is_inside) continue;
    T* const row = out + (k % 2 ? sy : 0) + (k / 2 ? sz : 0);
    atomicAdd(row, to_left);
    if (!gives) atomicAdd(row + sx, to_right);
  }
}

template <class T> struct Slopes { T by_index[3]; };

// Takes one voxel of the output, in all channels.
template <class T, int count>
__device__ SIMILIS_NOINLINE Slopes<T> gradients_by_taps(const GpuPass& p, std::int64_t n, int x,
    int y, int z, double ix, double iy, double iz, bool with_slopes, double scale) {
  const double index[3] = {ix, iy, iz};
  Taps<T, count> axis[3];
  T folded[3];
  find_taps(p, index, axis, folded);
  Slopes<T> result{};
  for (std::int64_t c = 0; c < p.channels; ++c) {
    const T g = load_as<T>(p.upstream, p.upstream.plane(n, c) + p.upstream.at(z, y, x));
    if (with_slopes) {
      const Sampled<T> sampled = interpolate_taps(p, axis, p.image.plane(n, c));
      for (int a = 0; a < 3; ++a) {
        result.by_index[a] = fma(g, sampled.slope[a] * folded[a], result.by_index[a]);
      }
    }
    if (p.image_sums.data != nullptr) scatter_taps(p, axis, n, c, g, scale);
  }
  return result;
}

// Does the same if the cell lies inside; every lane of the warp calls it.
template <class T>
__device__ __forceinline__ Slopes<T> gradients_of_cell(const GpuPass& p, const Cell<T>& cell,
    std::int64_t n, const Column& column, int z, bool in_cell, bool with_slopes) {
  Slopes<T> result{};
  const std::int64_t upstream = p.upstream.plane(n, 0) + p.upstream.at(z, column.y, column.x);
  for (std::int64_t c = 0; c < p.channels; ++c) {
    T g = 0;
    if (in_cell) {
      g = load_as<T>(p.upstream, upstream + c * p.upstream.strides[1]);
      if (with_slopes) {
        const Sampled<T> sampled = interpolate_cell<T, true>(p, cell,
            static_cast<const T*>(p.image.data) + p.image.plane(n, c) +
                p.image.at(cell.voxel[2], cell.voxel[1], cell.voxel[0]));
        for (int a = 0; a < 3; ++a) {
          result.by_index[a] = fma(g, sampled.slope[a], result.by_index[a]);
        }
      }
    }
    if (p.image_sums.data != nullptr) {
      scatter_cells(p, cell, p.image_sums.plane(n, c), g, in_cell);
    }
  }
  return result;
}

template <class T, int count, bool with_sums>
__global__ __launch_bounds__(kThreads, sizeof(T) == 4 && !with_sums ? 3 : 2) void gradients_kernel(
    const SIMILIS_GRID_CONSTANT GpuPass p) {
  const unsigned group = blockIdx.x / p.blocks;
  const bool with_slopes = p.field_gradient.data != nullptr || p.sums != nullptr;
  const bool is_fixed = p.fixed.high != nullptr;
  const bool has_cells = count == 2 && !p.is_nearest && is_own_type<T>(p.image.dtype) && !is_fixed;
  const double scale = is_fixed ? fixed_scale(p.fixed) : 1;
  ThreadSums sums;
  for (unsigned tile = blockIdx.x % p.blocks; tile < p.tiles; tile += p.blocks) {
    const Column column(p, tile);
    for (int d = 0; d < kTileZ; ++d) {
      const int z = column.z + d;
      if (z >= p.axes[2].out_extent) break;  // alike in all threads
      double by_field[3] = {};
      for (int k = 0; k < p.images; ++k) {
        const std::int64_t n = std::int64_t{group} * p.images + k;
        const Transform& t = p.transforms[n];
        const std::int64_t at = field_offset(p.field, n, z, column.y, column.x);
        FieldVector u{};
        double index[3];
        Cell<T> cell{};
        bool in_cell = false;
        if (column.is_inside) {
          load_field(p, at, &u);
          find_index(p, t, ColumnBase(p, t, column.x, column.y), z, at, u, index);
          in_cell = has_cells && find_cell(p, index, &cell);
        }
        Slopes<T> slopes{};
        if (has_cells) {
          slopes = gradients_of_cell(p, cell, n, column, z, in_cell, with_slopes);
        }
        if (column.is_inside && !in_cell) {
          slopes = gradients_by_taps<T, count>(
              p, n, column.x, column.y, z, index[0], index[1], index[2], with_slopes, scale);
        }
        if (with_slopes && column.is_inside) {
          add_gradient<T, with_sums>(p, t, slopes.by_index, column, z, at, u, by_field, &sums);
        }
        if constexpr (with_sums) {
          if (p.images > 1 && p.sums != nullptr) {
            add_sums(p, sums, n);
            sums = ThreadSums();
          }
        }
      }
      if (p.field_gradient.data != nullptr && column.is_inside) {
        store_field_gradient(p, column, group, z, by_field);
      }
    }
  }
  if constexpr (with_sums) {
    if (p.images == 1 && p.sums != nullptr) add_sums(p, sums, group);
  }
}

// A kernel without sums for A and S needs fewer registers, and most calls have none.
template <class T> Kernel gradients_kernel_of(Interpolation mode) {
  return mode == Interpolation::cubic ? gradients_kernel<T, 4, true> : gradients_kernel<T, 2, true>;
}

}  // namespace

Kernel gradients_kernel_for(bool is_f64, Interpolation mode, bool with_sums) {
  if (is_f64) return gradients_kernel_of<double>(mode);
  if (mode == Interpolation::linear && !with_sums) return gradients_kernel<float, 2, false>;
  return gradients_kernel_of<float>(mode);
}

}  // namespace similis::warp_internal
