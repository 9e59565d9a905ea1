// SPDX-License-Identifier: Apache-2.0
// Labels on the GPU: the heaviest label around each voxel and its weight, or the weight's
// gradients.
#include <type_traits>

#include "src/warp/cuda/cell.cuh"
#include "src/warp/cuda/kernels.h"
#include "src/warp/vote.h"

namespace similis::warp_internal {
namespace {

__device__ void store_label(const gpu::View& view, std::int64_t offset, double label) {
  if (view.dtype == DType::u8) {
    static_cast<std::uint8_t*>(view.data)[offset] = static_cast<std::uint8_t>(label);
  } else if (view.dtype == DType::u16) {
    static_cast<std::uint16_t*>(view.data)[offset] = static_cast<std::uint16_t>(label);
  } else {
    view.store(offset, label);
  }
}

// Blocks that a multiprocessor holds at least; 0: as the compiler likes. It likes five of the
// values in f64, which then spill registers and take a fifth longer.
template <class T, bool is_gradient>
constexpr int kLeastBlocks = std::is_same_v<T, double> && !is_gradient ? 4 : 0;

template <class T, bool is_gradient>
__global__ __launch_bounds__(kThreads, (kLeastBlocks<T, is_gradient>)) void labels_kernel(
    const SIMILIS_GRID_CONSTANT GpuPass p) {
  const unsigned group = blockIdx.x / p.blocks;
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
        Taps<T, 2> axis[3];
        T folded[3], by_index[3] = {0, 0, 0};
        if (column.is_inside) {
          load_field(p, at, &u);
          find_index(p, t, ColumnBase(p, t, column.x, column.y), z, at, u, index);
          find_taps(p, index, axis, folded);
        }
        for (std::int64_t c = 0; c < p.channels && column.is_inside; ++c) {
          const std::int64_t plane = p.image.plane(n, c);
          const Vote<T> best = vote(axis, p.rank - 1, p.smallest_label, p.background,
              [&](int vx, int vy, int vz) { return p.image.load(plane + p.image.at(vz, vy, vx)); });
          if constexpr (is_gradient) {
            const T g = load_as<T>(
                p.upstream, p.upstream.plane(n, c) + p.upstream.at(z, column.y, column.x));
            for (int a = 0; a < 3; ++a) by_index[a] += g * best.slope[a] * folded[a];
            continue;
          }
          if (p.output.data != nullptr) {
            store_label(
                p.output, p.output.plane(n, c) + p.output.at(z, column.y, column.x), best.label);
          }
          if (p.weight.data != nullptr) {
            store_as(
                p.weight, p.weight.plane(n, c) + p.weight.at(z, column.y, column.x), best.weight);
          }
        }
        if constexpr (is_gradient) {
          if (column.is_inside) {
            add_gradient<T, true>(p, t, by_index, column, z, at, u, by_field, &sums);
          }
          if (p.images > 1 && p.sums != nullptr) {
            add_sums(p, sums, n);
            sums = ThreadSums();
          }
        }
      }
      if (is_gradient && p.field_gradient.data != nullptr && column.is_inside) {
        store_field_gradient(p, column, group, z, by_field);
      }
    }
  }
  if constexpr (is_gradient) {
    if (p.images == 1 && p.sums != nullptr) add_sums(p, sums, group);
  }
}

}  // namespace

Kernel labels_kernel_for(bool is_f64, bool is_gradient) {
  if (is_f64) return is_gradient ? labels_kernel<double, true> : labels_kernel<double, false>;
  return is_gradient ? labels_kernel<float, true> : labels_kernel<float, false>;
}

}  // namespace similis::warp_internal
