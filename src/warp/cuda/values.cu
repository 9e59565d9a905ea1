// SPDX-License-Identifier: Apache-2.0
// Values sampled on the GPU.
//
//   field, 4 voxels ahead ─> index in f64 ─> cell ─> 8 gathers ─> value ─> output
//
// A voxel whose cell lies inside tests no tap; any other goes to a function that is not inlined, so
// that its registers cost the common way nothing.
#include "src/warp/cuda/cell.cuh"
#include "src/warp/cuda/kernels.h"

namespace similis::warp_internal {
namespace {

template <class T>
__device__ __forceinline__ void store_value(
    const GpuPass& p, std::int64_t n, std::int64_t c, int x, int y, int z, T value) {
  if (p.factor != 1) value *= static_cast<T>(p.factor);
  if (p.addend.data != nullptr) {
    const T addend = load_as<T>(p.addend, p.addend.plane(n, c) + p.addend.at(z, y, x));
    value = fma(static_cast<T>(p.field_factor), addend, value);
  }
  store_as(p.output, p.output.plane(n, c) + p.output.at(z, y, x), value);
}

template <class T, int count>
__device__ SIMILIS_NOINLINE void store_by_taps(
    const GpuPass& p, std::int64_t n, int x, int y, int z, double ix, double iy, double iz) {
  const double index[3] = {ix, iy, iz};
  Taps<T, count> axis[3];
  T slope[3];
  find_taps(p, index, axis, slope);
  for (std::int64_t c = 0; c < p.channels; ++c) {
    store_value(p, n, c, x, y, z, interpolate_taps(p, axis, p.image.plane(n, c)).value);
  }
}

template <class T, int count>
__global__ __launch_bounds__(kThreads, sizeof(T) == 4 ? 4 : 2) void values_kernel(
    const SIMILIS_GRID_CONSTANT GpuPass p) {
  const std::int64_t n = blockIdx.x / p.blocks;
  const Column column(p, blockIdx.x % p.blocks);
  if (!column.is_inside) return;
  const Transform& t = p.transforms[n];
  const ColumnBase base(p, t, column.x, column.y);
  FieldVector u[kTileZ];
#pragma unroll
  for (int d = 0; d < kTileZ; ++d) {
    const std::int64_t at = field_offset(p.field, n, column.z + d, column.y, column.x);
    if (column.z + d < p.axes[2].out_extent) load_field(p, at, &u[d]);
  }
  const bool has_cells = count == 2 && !p.is_nearest && is_own_type<T>(p.image.dtype);
#pragma unroll
  for (int d = 0; d < kTileZ; ++d) {
    const int z = column.z + d;
    if (z >= p.axes[2].out_extent) break;
    const std::int64_t at = field_offset(p.field, n, z, column.y, column.x);
    double index[3];
    find_index(p, t, base, z, at, u[d], index);
    int nearest[3];
    if (count == 2 && p.is_nearest && find_nearest(p, index, nearest)) {
      const std::int64_t voxel = p.image.at(nearest[2], nearest[1], nearest[0]);
      for (std::int64_t c = 0; c < p.channels; ++c) {
        store_value(
            p, n, c, column.x, column.y, z, load_as<T>(p.image, p.image.plane(n, c) + voxel));
      }
      continue;
    }
    Cell<T> cell;
    if (!has_cells || !find_cell(p, index, &cell)) {
      store_by_taps<T, count>(p, n, column.x, column.y, z, index[0], index[1], index[2]);
      continue;
    }
    const T* first = static_cast<const T*>(p.image.data) + p.image.plane(n, 0) +
                     p.image.at(cell.voxel[2], cell.voxel[1], cell.voxel[0]);
    for (std::int64_t c = 0; c < p.channels; ++c, first += p.image.strides[1]) {
      store_value(p, n, c, column.x, column.y, z, interpolate_cell<T, false>(p, cell, first).value);
    }
  }
}

template <class T> Kernel values_kernel_of(Interpolation mode) {
  return mode == Interpolation::cubic ? values_kernel<T, 4> : values_kernel<T, 2>;
}

}  // namespace

Kernel values_kernel_for(bool is_f64, Interpolation mode) {
  return is_f64 ? values_kernel_of<double>(mode) : values_kernel_of<float>(mode);
}

}  // namespace similis::warp_internal
