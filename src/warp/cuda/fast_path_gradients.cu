// SPDX-License-Identifier: Apache-2.0
// The fast path's gradients to the field and to A.
//
//   u of 4 voxels ─> indices in f64 ─> cells ─> 8 loads each ─> slopes · upstream ─> the field's
//   gradient, through shared memory so that stores are whole; or 12 sums of a block
#include "src/warp/cuda/fast_path_gradients.cuh"

namespace similis::warp_internal {
namespace {

// Sums over a column of the gradient to the index, and of that times the voxel's number in it and,
// for voxels of other columns of the row, times the distance to these.
template <class L> struct ColumnSums {
  float sum[L::rank] = {}, along[L::rank] = {}, across[L::rank] = {};

  __device__ __forceinline__ void add(int d, const float (&by_index)[L::rank]) {
#pragma unroll
    for (int a = 0; a < L::rank; ++a) {
      sum[a] += by_index[a];
      along[a] = fmaf(static_cast<float>(d), by_index[a], along[a]);
    }
  }
  __device__ __forceinline__ void add_of(int x, int d, const float (&by_index)[L::rank]) {
    add(d, by_index);
#pragma unroll
    for (int a = 0; a < L::rank; ++a) {
      across[a] = fmaf(static_cast<float>(x), by_index[a], across[a]);
    }
  }
};

// Columns are placed again for each batch where that leaves registers for loads.
template <class L>
constexpr bool kPlacesAgain = L::rank == 3 && L::reloads &&
                              (L::folds || L::is_half || L::is_one_batch);

// Returns the derivative of an index by u.
template <class L>
__device__ __forceinline__ float factor_of(
    const FastPass& p, const FastColumn<L>& column, int axis) {
  return L::reloads ? p.slopes[axis] : static_cast<float>(column.by_u[axis]);
}

// Stores the gradients at the border, where they are 0 yet, for the voxels of the column in
// `which`, a bit each.
template <class L, class E, bool with_sums>
__device__ __forceinline__ void store_at_border(
    const FastPass& p, const FastColumn<L>& of_lane, unsigned which, ColumnSums<L>* sums) {
  const auto store = [&](const FastColumn<L>& column, int z, const BorderCell<L>& cell) {
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
    if constexpr (with_sums) sums->add_of(column.x - of_lane.x, z - column.z, sum);
    if (p.field_gradient == nullptr) return;
    float* out = p.field_gradient + column.offset(p.gradient_strides, z);
#pragma unroll
    for (int a = 0; a < L::rank; ++a) {
      const float value = sum[a] * factor_of<L>(p, column, a);
      out[a] = L::is_part && p.keeps ? out[a] + value : value;
    }
  };
  for_each_at_border<L, kPlacesAgain<L>>(p, of_lane, which, store);
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
      const float value = sum[d][a] * factor_of<L>(p, column, a);
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
      triplets.put(d, a, sum[d][a] * factor_of<L>(p, column, a));
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

// Voxels whose loads are in flight together.
template <class L>
constexpr int kTogether = L::is_one_batch || (L::is_half && L::rank == 3) ? 2 : 1;

// Adds the gradients of some voxels in the channels that lie side by side.
template <bool is_masked, class L, class E>
__device__ __forceinline__ void add_gradients(const FastPass& p, const FastCell<L>* cells,
    const Lines<L, E>& lines, const E* upstream, unsigned mine, unsigned which,
    float (*sum)[L::rank]) {
  Corners<L, E> corners[kTogether<L>][L::step];
  E g[kTogether<L>][L::step];
#pragma unroll
  for (int d = 0; d < kTogether<L>; ++d, upstream += p.upstream_strides.z) {
#pragma unroll
    for (int k = 0; k < L::step; ++k) {
      g[d][k] = E{};
      if (mine >> d & 1u) g[d][k] = load_element(upstream + k * p.upstream_component);
      corners[d][k] = is_masked ? load_corners<L, E>(lines, cells[d].offset + k,
                                      which >> 8 * d & Rim<L>::all_corners)
                                : load_corners<L, E>(lines, cells[d].offset + k);
    }
  }
#pragma unroll
  for (int d = 0; d < kTogether<L>; ++d) {
#pragma unroll
    for (int k = 0; k < L::step; ++k) {
      add_slopes<L>(cells[d].fraction, in_f32(corners[d][k]), gpu::to_float(g[d][k]), sum[d]);
    }
  }
}

// Takes one channel at a time, or three side by side.
template <bool is_masked, class L, class E>
__device__ __forceinline__ void add_channels(const FastPass& p, const FastColumn<L>& column, int z,
    const FastCell<L> (&cells)[kBatch], const Rim<L>& rim, unsigned mine,
    float (&sum)[kBatch][L::rank]) {
  const std::int64_t upstream_at = opaque(column.offset(p.upstream_strides, z));
  const int channels = L::step == 3 ? 1 : p.channels;
  for (int c = 0; c < channels; ++c) {
    const E* upstream = static_cast<const E*>(p.upstream) + upstream_at + c * p.upstream_channel;
    const Lines<L, E> lines(image_of<E>(p, column.n, c), p.image_strides);
#pragma unroll
    for (int d = 0; d < kBatch; d += kTogether<L>) {
      add_gradients<is_masked, L, E>(
          p, cells + d, lines, upstream, mine >> d, rim.corners >> 8 * d, sum + d);
      upstream += kTogether<L> * static_cast<std::int64_t>(p.upstream_strides.z);
    }
  }
}

template <class L, class E, bool with_sums, class Staged>
__device__ __forceinline__ void store_gradients(const FastPass& p, const FastColumn<L>& column,
    int z, const FastCell<L> (&cells)[kBatch], unsigned inside, const Rim<L>& rim, Staged& staged,
    ColumnSums<L>* sums) {
  const unsigned mine = column.mine(z, kBatch);
  if constexpr (L::is_part) {
    if (p.keeps && gpu::first_lane((mine & inside) != 0) == gpu::kSubgroup) return;
  }
  float sum[kBatch][L::rank] = {};
  bool is_masked = false;
  if constexpr (L::masks) {
    is_masked = gpu::first_lane(rim.corners != Rim<L>::all) != gpu::kSubgroup;
    if (is_masked) add_channels<true, L, E>(p, column, z, cells, rim, mine, sum);
  }
  if (!is_masked) add_channels<false, L, E>(p, column, z, cells, rim, mine, sum);
  apply_slopes<L>(rim, inside, sum);
#pragma unroll
  for (int d = 0; d < kBatch; ++d) {
    if (with_sums && (inside & mine) >> d & 1u) sums->add(z - column.z + d, sum[d]);
  }
  if (with_sums && p.field_gradient == nullptr) return;
  if constexpr (L::is_part) {
    if (p.keeps) return store_each<L>(p, column, z, sum, mine & inside);
  }
  store_vectors<L>(p, column, z, sum, mine, staged);
}

// Adds up `count` numbers of each of a warp's lanes in a fixed order: at each step a lane hands
// half of its numbers to another one and takes that one's other half, so that few are passed on.
// Stores the sums.
template <int count>
__device__ __forceinline__ void store_sums_of_warp(double (&of)[count], double* sums) {
  int first = 0, owned = count, held = count;  // the lane's first number, how many exist, and slots
  int repeated = 0;  // lanes that differ in these bits end with the same sum
#pragma unroll
  for (int distance = kTileX / 2; distance > 0; distance /= 2) {
    const int other = lane() ^ distance;
    if (held == 1) {
      of[0] += gpu::value_of(of[0], other);
      repeated |= distance;
      continue;
    }
    const bool is_upper = (lane() & distance) != 0;
    const int half = (held + 1) / 2;
#pragma unroll
    for (int i = 0; i < half; ++i) {
      const double upper = half + i < held ? of[half + i] : 0;
      of[i] = (is_upper ? upper : of[i]) + gpu::value_of(is_upper ? of[i] : upper, other);
    }
    first += is_upper ? half : 0;
    owned = is_upper ? owned - half : min(owned, half);
    held = half;
  }
  if (owned > 0 && (lane() & repeated) == 0) sums[first] = of[0];
}

// Adds up the threads' sums in a fixed order, as MatrixSums has them: each axis's gradient times
// the position (x, y, z, 1). Lanes of a warp differ in x alone.
template <class L>
__device__ __forceinline__ void store_sums(
    const FastPass& p, const FastColumn<L>& column, const ColumnSums<L>& sums) {
  constexpr int kEach = 3;
  __shared__ double of_columns[kTileY][kEach * L::rank];
  __shared__ double of_warps[kTileY][kPositionSums];
  double of[kEach * L::rank];
#pragma unroll
  for (int a = 0; a < L::rank; ++a) {
    const double sum = sums.sum[a];
    of[kEach * a] = fma(sum, p.first[0] + column.x, static_cast<double>(sums.across[a]));
    of[kEach * a + 1] = sums.along[a];
    of[kEach * a + 2] = sum;
  }
  store_sums_of_warp(of, of_columns[warp()]);
  gpu::sync_warp();
  if (lane() < 4 * L::rank) {
    const int j = lane() % 4;
    const double* of_axis = of_columns[warp()] + lane() / 4 * kEach;
    const double sum = of_axis[2], along = fma(sum, column.position(p, column.z), of_axis[1]);
    double part = j == 0 ? of_axis[0] : j == 3 ? sum : 0;
    if (j == L::rank - 1) part = along;
    if (L::rank == 3 && j == 1) part = sum * (p.first[1] + column.y);
    of_warps[warp()][lane()] = part;
  }
  __syncthreads();
  const int k = static_cast<int>(threadIdx.x);
  if (k >= kSums) return;
  double total = 0;
  if (k < 4 * L::rank) {
    for (int w = 0; w < kTileY; ++w) total += of_warps[w][k];
  }
  const unsigned plane = gridDim.x * gridDim.y, tiles = plane * gridDim.z;
  const unsigned tile = blockIdx.z * plane + blockIdx.y * gridDim.x + blockIdx.x;
  p.matrix_sums[std::int64_t{k} * tiles + tile] = total;
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
  if constexpr (L::step == 1 && !L::is_part) clear_sums<L>(p, column, 0, p.channels);
  ColumnSums<L> sums;
  with_element_type<L>(p, [&]<class E>(E) {
    const unsigned at_border = for_each_batch<L, kPlacesAgain<L>>(p, column,
        [&](int z, const FastCell<L>(&cells)[kBatch], unsigned inside, const Rim<L>& rim) {
          store_gradients<L, E, with_sums>(p, column, z, cells, inside, rim, staged[warp()], &sums);
        });
    store_at_border<L, E, with_sums>(p, column, at_border, &sums);
  });
  if constexpr (with_sums) store_sums<L>(p, column, sums);
}

template <class L> FastKernel kernel_of(bool with_sums, bool is_part) {
  using Whole = Reloading<
      std::conditional_t<L::is_half, L, std::conditional_t<L::may_pad, Folding<L>, Masking<L>>>>;
  const auto plain =
      is_part ? fast_gradients_kernel<Part<L>, false> : fast_gradients_kernel<Whole, false>;
  return {with_sums ? fast_gradients_kernel<L, true> : plain, 8, 0};
}
template <class L> FastKernel kernel_of(bool is_padded, bool with_sums, bool is_part) {
  return is_padded ? kernel_of<Padded<L>>(with_sums, is_part)
                   : kernel_of<Unpadded<L>>(with_sums, is_part);
}

}  // namespace

FastKernel fast_gradients_one_batch(bool is_half) {
  return {is_half
              ? fast_gradients_kernel<Reloading<OneBatch<Masking<Unpadded<Half<Volume>>>>>, false>
              : fast_gradients_kernel<Reloading<OneBatch<Masking<Unpadded<Volume>>>>, false>,
      kBatch, 0};
}

FastKernel fast_gradients(
    FastLayout layout, bool is_half, bool is_padded, bool with_sums, bool is_part) {
  switch (layout) {
    case FastLayout::volume:
      return is_half ? kernel_of<Half<Volume>>(is_padded, with_sums, is_part)
                     : kernel_of<Volume>(is_padded, with_sums, is_part);
    case FastLayout::vectors: return {fast_gradients_kernel<Vectors, false>, 8, 0};
    case FastLayout::picture: break;
  }
  return is_half ? kernel_of<Half<Picture>>(is_padded, with_sums, is_part)
                 : kernel_of<Picture>(is_padded, with_sums, is_part);
}

}  // namespace similis::warp_internal
