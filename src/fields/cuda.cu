// SPDX-License-Identifier: Apache-2.0
// Inverses and Jacobian determinants of vector fields on the GPU. A thread inverts one voxel: all
// its steps are in one kernel, and the field comes from the cache. It computes the determinants of
// a column of voxels.
#include <cstdint>
#include <memory>

#include "src/core/tensor/memory.h"
#include "src/fields/fields.h"
#include "src/fields/jacobian.h"
#include "src/warp/cuda/voxels.cuh"

namespace similis::fields_internal {
namespace {

using warp_internal::blocks_for_items;
using warp_internal::kThreads;
using warp_internal::kTileX;
using warp_internal::kTileY;
using warp_internal::voxel_count;

// Return the value of the lane before, or behind, in the row of kTileX.
template <class T> __device__ __forceinline__ T of_previous_lane(T value) {
#if defined(__HIPCC__)
  return __shfl_up(value, 1, kTileX);
#else
  return __shfl_up_sync(0xffffffffu, value, 1);
#endif
}
template <class T> __device__ __forceinline__ T of_next_lane(T value) {
#if defined(__HIPCC__)
  return __shfl_down(value, 1, kTileX);
#else
  return __shfl_down_sync(0xffffffffu, value, 1);
#endif
}

// Writes numbers, or their square roots.
__global__ void results_kernel(const double* found, std::int64_t count, bool is_square, void* data,
    DType dtype, std::int64_t stride) {
  const std::int64_t n = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (n >= count) return;
  gpu::store_element(data, dtype, n * stride, is_square ? sqrt(found[n]) : found[n]);
}

// A block takes tiles of kTileX by kTileY columns of `depth` voxels of a field; a warp takes
// neighbours along x.
struct Tiles {
  int extent[3];  // x, y, z
  int depth;
  unsigned x, y, z;  // number of tiles

  Tiles(const Extents& field, int depth_) : depth(depth_) {
    for (int a = 0; a < 3; ++a) extent[a] = static_cast<int>(field[3 - a]);
    const auto tiles = [](int voxels, int tile) {
      return static_cast<unsigned>((voxels + tile - 1) / tile);
    };
    x = tiles(extent[0], kTileX), y = tiles(extent[1], kTileY), z = tiles(extent[2], depth);
  }
  std::int64_t count() const { return std::int64_t{x} * y * z; }  // of one field
};

struct TileColumn {
  int n, x, y, z, end;
  bool is_mine;

  __device__ explicit TileColumn(const Tiles& tiles) {
    const unsigned tx = blockIdx.x % tiles.x, rest = blockIdx.x / tiles.x;
    const unsigned ty = rest % tiles.y, zn = rest / tiles.y;
    n = static_cast<int>(zn / tiles.z);
    x = static_cast<int>(tx) * kTileX + static_cast<int>(threadIdx.x % kTileX);
    y = static_cast<int>(ty) * kTileY + static_cast<int>(threadIdx.x / kTileX);
    z = static_cast<int>(zn % tiles.z) * tiles.depth;
    end = min(z + tiles.depth, tiles.extent[2]);
    is_mine = x < tiles.extent[0] && y < tiles.extent[1];
  }
};

struct InverseView {
  const void* u;
  std::int64_t image;  // the distance between fields
  gpu::View output;
  int first;                    // the output's first row on the whole axis, whatever rows u has
  unsigned long long* largest;  // [N]: |r|² as bits, which order as numbers do; NaN is above all
};

template <class T, int rank, bool is_cut>
__global__ __launch_bounds__(kThreads) void invert_kernel(const SIMILIS_GRID_CONSTANT Tiles tiles,
    const SIMILIS_GRID_CONSTANT InverseOptions<T> options,
    const SIMILIS_GRID_CONSTANT InverseView view) {
  const TileColumn column(tiles);
  unsigned long long most = 0;
  if (column.is_mine) {
    const T* const field = static_cast<const T*>(view.u) + column.n * view.image;
    int voxel[3] = {column.x, column.y, column.z};
    voxel[rank - 1] += view.first;
    T w[rank];
    const double square = invert_voxel<T, rank, is_cut>(
        options, voxel, [field](std::int64_t at) { return __ldg(field + at); }, w);
    most = bits_as<unsigned long long>(fabs(square));
    const std::int64_t at =
        warp_internal::field_offset(view.output, column.n, column.z, column.y, column.x);
#pragma unroll
    for (int i = 0; i < rank; ++i) {
      warp_internal::store_as(view.output, at + i * view.output.strides[4], w[i]);
    }
  }
  __shared__ unsigned long long shared[kThreads];
  shared[threadIdx.x] = most;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      shared[threadIdx.x] = max(shared[threadIdx.x], shared[threadIdx.x + half]);
    }
  }
  if (threadIdx.x == 0 && view.largest != nullptr) {
    atomicMax(view.largest + column.n, shared[0]);
  }
}

// Rows count from the determinant's first. The field's are `low` to `high` along z, y in 2D.
template <class T> struct JacobianView {
  Differences<T> along[3];
  int low[3], high[3];  // the field's first and last voxel, by x, y, z
  gpu::View u;
  void* determinant;
  DType dtype;
  std::int64_t strides[4];
  double* folds;  // [N]; sums of whole numbers are exact in any order
};

template <class T, int rank> struct Vector { T of[rank]; };

template <class T, int rank, class E>
__device__ __forceinline__ Vector<T, rank> load_vector(
    const E* row, std::int64_t at, std::int64_t component) {
  Vector<T, rank> result;
#pragma unroll
  for (int i = 0; i < rank; ++i) {
    if constexpr (sizeof(T) == 8) {
      result.of[i] = row[at + i * component];
    } else {
      result.of[i] = gpu::to_float(row[at + i * component]);
    }
  }
  return result;
}

// The determinants of a column; returns how many fold. A vector is loaded once by its own thread
// and twice by its neighbours along y; neighbours along x and z get it from registers.
template <class T, int rank, class E>
__device__ __forceinline__ unsigned store_column(
    const Tiles& tiles, const JacobianView<T>& p, const TileColumn& column) {
  using V = Vector<T, rank>;
  const std::int64_t *s = p.u.strides, component = s[4];
  const int x = min(column.x, tiles.extent[0] - 1), y = min(column.y, tiles.extent[1] - 1);
  const int lane = static_cast<int>(threadIdx.x % kTileX);
  const E* const field = static_cast<const E*>(p.u.data) + column.n * s[0] + y * s[2] + x * s[3];
  const std::int64_t up = y > p.low[1] ? -s[2] : 0, down = y < p.high[1] ? s[2] : 0;
  const std::int64_t left = x > 0 ? -s[3] : 0, right = x + 1 < tiles.extent[0] ? s[3] : 0;
  const T by_x = left == 0 || right == 0 ? p.along[0].at_border : p.along[0].inside;
  const T by_y = up == 0 || down == 0 ? p.along[1].at_border : p.along[1].inside;
  const auto at = [&](int z) { return min(max(z, p.low[2]), p.high[2]) * s[1]; };
  unsigned folds = 0;
  V here = load_vector<T, rank>(field, at(column.z), component), before = here;
  if constexpr (rank == 3) before = load_vector<T, rank>(field, at(column.z - 1), component);
  for (int z = column.z; z < column.end; ++z) {
    const E* const row = field + at(z);
    V behind = here;
    if constexpr (rank == 3) behind = load_vector<T, rank>(field, at(z + 1), component);
    const V above = load_vector<T, rank>(row, up, component),
            below = load_vector<T, rank>(row, down, component);
    // Lanes at the ends of the warp, and of the row, load one neighbour; other lanes give theirs.
    const bool is_first = lane == 0;
    V outer = here;
    if (is_first || lane == kTileX - 1) {
      outer = load_vector<T, rank>(row, is_first ? left : right, component);
    }
    const T by_z = z == p.low[2] || z == p.high[2] ? p.along[2].at_border : p.along[2].inside;
    T change[3][3] = {};
#pragma unroll
    for (int i = 0; i < rank; ++i) {
      T to_left = of_previous_lane(here.of[i]), to_right = of_next_lane(here.of[i]);
      if (is_first) to_left = outer.of[i];
      if (lane == kTileX - 1) to_right = outer.of[i];
      if (right == 0) to_right = here.of[i];
      change[i][0] = (to_right - to_left) * by_x;
      change[i][1] = (below.of[i] - above.of[i]) * by_y;
      if constexpr (rank == 3) change[i][2] = (behind.of[i] - before.of[i]) * by_z;
    }
    const T value = determinant(change);
    if (column.is_mine) {
      const std::int64_t to =
          column.n * p.strides[0] + z * p.strides[1] + y * p.strides[2] + x * p.strides[3];
      if (sizeof(T) == 4 && p.dtype == DType::f32) {
        static_cast<float*>(p.determinant)[to] = static_cast<float>(value);
      } else {
        gpu::store_element(p.determinant, p.dtype, to, value);
      }
      folds += is_fold(value) ? 1 : 0;
    }
    before = here;
    here = behind;
  }
  return folds;
}

template <class T, int rank>
__global__ __launch_bounds__(kThreads) void jacobian_kernel(
    const SIMILIS_GRID_CONSTANT Tiles tiles, const SIMILIS_GRID_CONSTANT JacobianView<T> p) {
  const TileColumn column(tiles);
  unsigned folds = 0;
  if constexpr (sizeof(T) == 8) {
    folds = store_column<T, rank, double>(tiles, p, column);
  } else {
    switch (p.u.dtype) {
      case DType::f16: folds = store_column<T, rank, F16>(tiles, p, column); break;
      case DType::bf16: folds = store_column<T, rank, BF16>(tiles, p, column); break;
      default: folds = store_column<T, rank, float>(tiles, p, column);
    }
  }
  __shared__ unsigned folded;
  if (threadIdx.x == 0) folded = 0;
  __syncthreads();
  if (folds != 0) atomicAdd(&folded, folds);
  __syncthreads();
  if (threadIdx.x == 0 && folded != 0) {
    atomicAdd(p.folds + column.n, static_cast<double>(folded));
  }
}

std::shared_ptr<void> cleared(
    std::int64_t bytes, Device device, const char* operation, const Execution& exec) {
  std::shared_ptr<void> memory = allocate_bytes(static_cast<std::size_t>(bytes), device, exec);
  gpu::clear(operation, exec.queue.handle, memory.get(), static_cast<std::size_t>(bytes));
  return memory;
}

}  // namespace

namespace {

template <class T>
void launch_inverse(const InversePass& pass, const InverseView& view, const Execution& exec) {
  const Tiles tiles(pass.output.shape, 1);
  const auto kernel = pass.is_part()
                          ? pass.rank == 3 ? invert_kernel<T, 3, true> : invert_kernel<T, 2, true>
                      : pass.rank == 3 ? invert_kernel<T, 3, false>
                                       : invert_kernel<T, 2, false>;
  gpu::launch("invert", exec.queue.handle, static_cast<unsigned>(tiles.count() * pass.u.shape[0]),
      kThreads, 0, kernel, tiles, inverse_options<T>(pass), view);
}

constexpr int kDepth = 8;  // of columns, which load a voxel before them and one behind

template <class T>
void launch_jacobian(const JacobianPass& pass, double* folds, const Execution& exec) {
  const Tiles tiles(pass.determinant.shape, kDepth);
  JacobianView<T> p{};
  TensorView u = pass.u;
  for (int a = 0; a < 3; ++a) p.high[a] = static_cast<int>(u.shape[3 - a] - 1);
  const int cut = pass.rank - 1;
  u.offset += pass.first * u.strides[3 - cut];
  p.low[cut] = static_cast<int>(-pass.first);
  p.high[cut] -= static_cast<int>(pass.first);
  p.u = gpu::View(u);
  p.determinant = pass.determinant.data();
  p.dtype = pass.determinant.dtype;
  p.folds = folds;
  for (int a = 0; a < pass.rank; ++a) p.along[a] = Differences<T>(pass.axes[a]);
  for (int axis = 0; axis < 4; ++axis) p.strides[axis] = pass.determinant.strides[axis];
  gpu::launch("jacobian_determinant", exec.queue.handle,
      static_cast<unsigned>(tiles.count() * pass.u.shape[0]), kThreads, 0,
      pass.rank == 3 ? jacobian_kernel<T, 3> : jacobian_kernel<T, 2>, tiles, p);
}

}  // namespace

void invert_cuda(const InversePass& pass, const Execution& exec) {
  const gpu::Current current(pass.u.device);
  const std::int64_t count = pass.u.shape[0];
  std::shared_ptr<void> memory;
  if (!pass.residual.empty()) memory = cleared(count * 8, pass.u.device, "invert", exec);
  auto* largest = static_cast<unsigned long long*>(memory.get());
  const InverseView view{pass.u.data(), pass.u.strides[0], gpu::View(pass.output),
      static_cast<int>(pass.first), largest};
  pass.u.dtype == DType::f64 ? launch_inverse<double>(pass, view, exec)
                             : launch_inverse<float>(pass, view, exec);
  if (largest == nullptr) return;
  gpu::launch("invert", exec.queue.handle, blocks_for_items(count), kThreads, 0, results_kernel,
      static_cast<const double*>(memory.get()), count, true, pass.residual.data(),
      pass.residual.dtype, pass.residual.strides[0]);
}

void jacobian_cuda(const JacobianPass& pass, const Execution& exec) {
  const gpu::Current current(pass.u.device);
  const std::int64_t count = pass.u.shape[0];
  // Blocks add to the result itself where it has their type: that saves a launch.
  const bool is_own = pass.folds.dtype == DType::f64 && (count == 1 || pass.folds.strides[0] == 1);
  std::shared_ptr<void> memory;
  auto* folds = static_cast<double*>(pass.folds.data());
  if (is_own) {
    gpu::clear(
        "jacobian_determinant", exec.queue.handle, folds, static_cast<std::size_t>(count) * 8);
  } else {
    memory = cleared(count * 8, pass.u.device, "jacobian_determinant", exec);
    folds = static_cast<double*>(memory.get());
  }
  pass.u.dtype == DType::f64 ? launch_jacobian<double>(pass, folds, exec)
                             : launch_jacobian<float>(pass, folds, exec);
  if (is_own) return;
  gpu::launch("jacobian_determinant", exec.queue.handle, blocks_for_items(count), kThreads, 0,
      results_kernel, static_cast<const double*>(folds), count, false, pass.folds.data(),
      pass.folds.dtype, pass.folds.strides[0]);
}

}  // namespace similis::fields_internal
