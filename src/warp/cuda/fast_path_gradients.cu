// SPDX-License-Identifier: Apache-2.0
// The fast path's gradients to the field and to A.
//
//   u of 4 voxels ─> indices in f64 ─> cells ─> 8 loads each ─> slopes · upstream ─> the field's
//   gradient, through shared memory so that stores are whole; or 12 sums of a block
#include "src/warp/cuda/fast_path.cuh"

namespace similis::warp_internal {
namespace {

// Adds g times the slopes along x, y, z.
template <class L>
__device__ __forceinline__ void add_slopes(
    const float (&fraction)[L::rank], const Corners<L>& k, float g, float (&sum)[L::rank]) {
  const float fx = fraction[0], fy = fraction[1];
  const auto& v = k.v;
  if constexpr (L::rank == 2) {
    sum[0] = fmaf(g, mix(fy, v[1] - v[0], v[3] - v[2]), sum[0]);
    sum[1] = fmaf(g, mix(fx, v[2], v[3]) - mix(fx, v[0], v[1]), sum[1]);
  } else {
    const float fz = fraction[2];
    const float x0 = mix(fy, v[1] - v[0], v[3] - v[2]);
    const float x1 = mix(fy, v[5] - v[4], v[7] - v[6]);
    const float l0 = mix(fx, v[0], v[1]), l1 = mix(fx, v[2], v[3]);
    const float l2 = mix(fx, v[4], v[5]), l3 = mix(fx, v[6], v[7]);
    sum[0] = fmaf(g, mix(fz, x0, x1), sum[0]);
    sum[1] = fmaf(g, mix(fz, l1 - l0, l3 - l2), sum[1]);
    sum[2] = fmaf(g, mix(fy, l2, l3) - mix(fy, l0, l1), sum[2]);
  }
}

template <class E> __device__ __forceinline__ const E* image_of(const FastPass& p, int n, int c) {
  return static_cast<const E*>(p.image) + n * p.image_strides.image + c * p.image_channel;
}

// Sums over a column of the gradient to the index, and of that times the voxel's number in it.
template <class L> struct ColumnSums {
  float sum[L::rank] = {}, along[L::rank] = {};

  __device__ __forceinline__ void add(int d, const float (&by_index)[L::rank]) {
#pragma unroll
    for (int a = 0; a < L::rank; ++a) {
      sum[a] += by_index[a];
      along[a] = fmaf(static_cast<float>(d), by_index[a], along[a]);
    }
  }
};

// Stores the gradients at the border, where they are 0 yet, for the voxels of the column in
// `which`, a bit each.
template <class L, class E, bool with_sums>
__device__ __forceinline__ void store_at_border(
    const FastPass& p, const FastColumn<L>& column, unsigned which, ColumnSums<L>* sums) {
  for_each_at_border<L>(p, column, which, [&](int z, const BorderCell<L>& cell) {
    const E* upstream = static_cast<const E*>(p.upstream) + column.offset(p.upstream_strides, z);
    float sum[L::rank] = {};
    const int channels = L::step == 3 ? 1 : p.channels;
    for (int c = 0; c < channels; ++c) {
      for (int k = 0; k < L::step; ++k) {
        add_slopes<L>(cell.fraction,
            load_corners_inside<L, E>(p, cell, image_of<E>(p, column.n, c) + k),
            load_float(upstream + c * p.upstream_channel + k * p.upstream_component), sum);
      }
    }
#pragma unroll
    for (int a = 0; a < L::rank; ++a) sum[a] *= cell.slope[a];
    if constexpr (with_sums) sums->add(z - column.z, sum);
    if (p.field_gradient == nullptr) return;
    float* out = p.field_gradient + column.offset(p.gradient_strides, z);
#pragma unroll
    for (int a = 0; a < L::rank; ++a) {
      const float value = sum[a] * static_cast<float>(column.by_u[a]);
      out[a] = L::is_part && p.keeps ? out[a] + value : value;
    }
  });
}

// Stores the gradients of voxels in `which`, a bit each, or adds them to what there is.
template <class L>
__device__ __forceinline__ void store_each(const FastPass& p, const FastColumn<L>& column, int z,
    const float (&sum)[kBatch][L::rank], unsigned which) {
  float* out = p.field_gradient + column.offset(p.gradient_strides, z);
#pragma unroll
  for (int d = 0; d < kBatch; ++d, out += p.gradient_strides.z) {
    if ((which >> d & 1u) == 0) continue;
#pragma unroll
    for (int a = 0; a < L::rank; ++a) {
      const float value = sum[d][a] * static_cast<float>(column.by_u[a]);
      out[a] = L::is_part && p.keeps ? out[a] + value : value;
    }
  }
}

// Stores three floats a lane, of voxels behind each other: the warp stores them as neighbours, in
// whole vectors if the address allows it.
struct Triplets {
  float4 of[kBatch][3 * kTileX / 4];

  __device__ __forceinline__ void put(int d, int component, float value) {
    reinterpret_cast<float*>(of[d])[3 * lane() + component] = value;
  }
  /// `row` is the first lane's at z. Lanes beyond the output have none.
  template <class L>
  __device__ __forceinline__ void store(
      const FastPass& p, const FastColumn<L>& column, int z, float* row, int stride) const {
    const int floats = floats_of_row(p);
#pragma unroll
    for (int d = 0; d < kBatch; ++d, row += stride) {
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
struct Pairs {};

template <class L>
__device__ __forceinline__ void store_vectors(const FastPass& p, const FastColumn<L>& column, int z,
    const float (&sum)[kBatch][L::rank], unsigned /*mine*/, Triplets& triplets) {
#pragma unroll
  for (int d = 0; d < kBatch; ++d) {
#pragma unroll
    for (int a = 0; a < 3; ++a) {
      triplets.put(d, a, sum[d][a] * static_cast<float>(column.by_u[a]));
    }
  }
  gpu::sync_warp();
  triplets.store(p, column, z, p.field_gradient + column.row_offset(p.gradient_strides, z),
      p.gradient_strides.z);
  gpu::sync_warp();
}
template <class L>
__device__ __forceinline__ void store_vectors(const FastPass& p, const FastColumn<L>& column, int z,
    const float (&sum)[kBatch][L::rank], unsigned mine, Pairs&) {
  store_each<L>(p, column, z, sum, mine);
}

// Takes one channel at a time, or three side by side.
template <class L, class E, bool with_sums, class Staged>
__device__ __forceinline__ void store_gradients(const FastPass& p, const FastColumn<L>& column,
    int z, const FastCell<L> (&cells)[kBatch], unsigned inside, Staged& staged,
    ColumnSums<L>* sums) {
  const unsigned mine = column.mine(z, kBatch);
  if constexpr (L::is_part) {
    if (p.keeps && gpu::first_lane((mine & inside) != 0) == gpu::kSubgroup) return;
  }
  const std::int64_t upstream_at = opaque(column.offset(p.upstream_strides, z));
  float sum[kBatch][L::rank] = {};
  const int channels = L::step == 3 ? 1 : p.channels;
  for (int c = 0; c < channels; ++c) {
    const E* upstream = static_cast<const E*>(p.upstream) + upstream_at + c * p.upstream_channel;
    const Lines<L, E> lines(image_of<E>(p, column.n, c), p.image_strides);
#pragma unroll
    for (int d = 0; d < kBatch; ++d, upstream += p.upstream_strides.z) {
      Corners<L> corners[L::step];
      float g[L::step];
#pragma unroll
      for (int k = 0; k < L::step; ++k) {
        g[k] = mine >> d & 1u ? load_float(upstream + k * p.upstream_component) : 0.0f;
        corners[k] = load_corners<L, E>(lines, cells[d].offset + k);
      }
#pragma unroll
      for (int k = 0; k < L::step; ++k) {
        add_slopes<L>(cells[d].fraction, corners[k], g[k], sum[d]);
      }
    }
  }
#pragma unroll
  for (int d = 0; d < kBatch; ++d) {
#pragma unroll
    for (int a = 0; a < L::rank; ++a) sum[d][a] = inside >> d & 1u ? sum[d][a] : 0.0f;
    if (with_sums && (inside & mine) >> d & 1u) sums->add(z - column.z + d, sum[d]);
  }
  if (with_sums && p.field_gradient == nullptr) return;
  if constexpr (L::is_part) {
    if (p.keeps) return store_each<L>(p, column, z, sum, mine & inside);
  }
  store_vectors<L>(p, column, z, sum, mine, staged);
}

// Adds up the threads' sums in a fixed order, as MatrixSums has them: each axis's gradient times
// the position (x, y, z, 1).
template <class L>
__device__ __forceinline__ void store_sums(
    const FastPass& p, const FastColumn<L>& column, const ColumnSums<L>& sums) {
  __shared__ double of_warps[kTileY][kPositionSums];
  const double position[2] = {p.first[0] + column.x, p.first[1] + column.y};
#pragma unroll
  for (int a = 0; a < L::rank; ++a) {
    const double sum = sums.sum[a];
    const double along = fma(sum, column.position(p, column.z), static_cast<double>(sums.along[a]));
    double parts[4] = {
        sum * position[0], L::rank == 3 ? sum * position[1] : along, L::rank == 3 ? along : 0, sum};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      parts[j] = gpu::subgroup_sum(parts[j]);
      if (lane() == 0) of_warps[warp()][4 * a + j] = parts[j];
    }
  }
  __syncthreads();
  const int k = static_cast<int>(threadIdx.x);
  if (k >= kSums) return;
  double total = 0;
  if (k < 4 * L::rank) {
    for (int w = 0; w < kTileY; ++w) total += of_warps[w][k];
  }
  const unsigned tile = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  p.matrix_sums[std::int64_t{tile} * kSums + k] = total;
}

template <class L, bool with_sums>
__global__ __launch_bounds__(kThreads, 4) void fast_gradients_kernel(
    const SIMILIS_GRID_CONSTANT FastPass p) {
  using Staged = std::conditional_t<L::rank == 3, Triplets, Pairs>;
  __shared__ Staged staged[kTileY];
  if constexpr (L::is_part) {
    if (is_left_out<L>(p)) return;
  }
  const FastColumn<L> column(p);
  ColumnSums<L> sums;
  with_element_type<L>(p, [&]<class E>(E) {
    const unsigned at_border = for_each_batch<L>(
        p, column, [&](int z, const FastCell<L>(&cells)[kBatch], unsigned inside) {
          store_gradients<L, E, with_sums>(p, column, z, cells, inside, staged[warp()], &sums);
        });
    store_at_border<L, E, with_sums>(p, column, at_border, &sums);
  });
  if constexpr (with_sums) store_sums<L>(p, column, sums);
}

// Adds up `groups` dense gradients; their rows of `row` floats go to z and y of `sum`.
__global__ __launch_bounds__(kThreads) void add_groups_kernel(
    const FastPass p, int groups, int row, float* sum, FastStrides strides) {
  const std::int64_t count = p.gradient_strides.image;
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += step) {
    float total = p.field_gradient[i];
    for (int group = 1; group < groups; ++group) total += p.field_gradient[i + group * count];
    const std::int64_t line = i / row, z = line / p.out[1];
    float& to = sum[z * strides.z + (line - z * p.out[1]) * strides.y + (i - line * row)];
    to = p.keeps ? to + total : total;
  }
}

template <class L> FastKernel kernel_of(bool with_sums, bool is_part) {
  const auto plain =
      is_part ? fast_gradients_kernel<Part<L>, false> : fast_gradients_kernel<L, false>;
  return {with_sums ? fast_gradients_kernel<L, true> : plain, 8, 0};
}

}  // namespace

FastKernel fast_gradients(FastLayout layout, bool is_half, bool with_sums, bool is_part) {
  switch (layout) {
    case FastLayout::volume:
      return is_half ? kernel_of<Half<Volume>>(with_sums, is_part)
                     : kernel_of<Volume>(with_sums, is_part);
    case FastLayout::vectors: return {fast_gradients_kernel<Vectors, false>, 8, 0};
    case FastLayout::picture: break;
  }
  return is_half ? kernel_of<Half<Picture>>(with_sums, is_part)
                 : kernel_of<Picture>(with_sums, is_part);
}

void add_groups(const FastPass& pass, int groups, int row, float* sum, const FastStrides& strides,
    const char* operation, const Execution& exec) {
  gpu::launch(operation, exec.queue.handle, blocks_for_items(pass.gradient_strides.image), kThreads,
      0, add_groups_kernel, pass, groups, row, sum, strides);
}

}  // namespace similis::warp_internal
