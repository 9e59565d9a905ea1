// SPDX-License-Identifier: Apache-2.0
// u' = G_elastic (d + u(x + d)) in one pass, d = step·g / |largest vector of g|:
//
//   u ─> ring of 4 planes with a rim                               shared
//   g, 8 vectors of u ─> d + u(x + d), with a rim of a voxel       shared, two planes
//   12 of these ─> G along y and x ─> 3 planes ─> along z ─> 2 u'  registers
//
// A block takes a tile of 28x16 voxels, and a thread two neighbours of a row: what they share is
// loaded once. No vector of d is longer than a voxel, so a cell begins at its own voxel or at the
// one before. Per voxel: u and g 12 B each, 1.4 and 1.2 times with their rims; 55 shared words in
// 45 loads and stores; u' 12 B.
//
// A warp forms 30 sums of one row, and a row of the ring takes 96 words, so that neighbours of a
// voxel along y and z lie in its own banks: signs of d that differ within a warp cost little. With
// tiles of 32 columns, whose rows of 34 sums go on in the next warp, four of ten accesses of shared
// memory waited for another lane's.
#include <cmath>
#include <cstddef>

#include "src/core/tensor/convert.h"
#include "src/gpu/cuda/vendor.h"
#include "src/registration/cuda/fused.h"
#include "src/registration/cuda/rounding.cuh"
#include "src/registration/cuda/tiles.cuh"
#include "src/registration/passes.h"

namespace similis::registration_internal::cuda {
namespace {

constexpr int kRing = 4;  // planes of u: those beside a cell's own, and one that comes
constexpr int kRim = 2;   // voxels of u beside a tile
constexpr int kPair = 2;  // voxels of a thread
constexpr int kWarp = gpu::kSubgroup;
constexpr int kTileColumns = kWarp - 2 * kRim;
constexpr int kFieldPitch = 3 * kWarp;
constexpr int kSumColumns = kTileColumns + 2, kPitch = 3 * kSumColumns;
constexpr int kSumsOfThread = 2;
// Half a warp smooths a row, so that its vectors lie in different banks.
constexpr int kPairThreads = kWarp / kPair;
static_assert(kPair * kPairThreads >= kTileColumns);

// Sizes that depend on the type: in f64 a tile has half as many rows, which every GPU's shared
// memory holds.
template <class T> struct Sizes {
  static constexpr int rows = sizeof(T) == sizeof(float) ? 16 : 8;
  static constexpr int field_rows = rows + 2 * kRim, field_plane = kFieldPitch * field_rows;
  static constexpr int sum_rows = rows + 2, sum_plane = kPitch * sum_rows;
  static constexpr int warps = sum_rows / kSumsOfThread, threads = kWarp * warps;
  static constexpr int loads = (field_plane + threads - 1) / threads;
  static constexpr int shared_bytes = sizeof(T) * (kRing * field_plane + 2 * sum_plane);
  static_assert(kPairThreads * rows <= threads);
};

template <class T> struct Composition {
  const T *g, *u;
  T* to;
  double step;
  T centre, beside;  // taps of G_elastic
};

// Planes of the ring about a voxel.
template <class T> struct RingPlanes { const T *before, *here, *behind; };

// The longest step: a voxel's end is the next one's begin.
template <class T>
constexpr T kMost = static_cast<T>(
    sizeof(T) == sizeof(float) ? 0x1.fffffep-1 : 0x1.fffffffffffffp-1);

template <class T> struct alignas(2 * sizeof(T)) Two { T x, y; };

// A voxel of the grid whose sum a thread forms.
template <class T> struct SumPlace {
  unsigned number;      // its first number in a plane of memory
  int own;              // likewise in the ring
  T least[2], most[2];  // of d along x and y, within the grid

  __device__ SumPlace(const Level<T>& p, int x0, int y0, int row, int column) {
    const int at[2] = {
        min(max(x0 - 1 + column, 0), p.size[0] - 1), min(max(y0 - 1 + row, 0), p.size[1] - 1)};
    number = static_cast<unsigned>(3 * (at[1] * p.size[0] + at[0]));
    own = (at[1] - y0 + kRim) * kFieldPitch + 3 * (at[0] - x0 + kRim);
#pragma unroll
    for (int a = 0; a < 2; ++a) {
      least[a] = at[a] > 0 ? -1 : 0;
      most[a] = at[a] + 1 < p.size[a] ? kMost<T> : 0;
    }
  }

  // Sets sum to d + u(x + d), d = factor·g. Limits along z are those of the plane.
  __device__ __forceinline__ void compose(
      const T (&g)[3], T factor, T least_z, T most_z, const RingPlanes<T>& ring, T* sum) const {
    const T lower[3] = {least[0], least[1], least_z}, upper[3] = {most[0], most[1], most_z};
    bool is_before[3];
    T d[3], fraction[3];
#pragma unroll
    for (int a = 0; a < 3; ++a) {
      d[a] = factor * g[a];
      const T moved = fmin(fmax(d[a], lower[a]), upper[a]);
      is_before[a] = moved < 0;
      fraction[a] = is_before[a] ? moved + 1 : moved;
    }
    const int cell = own - (is_before[0] ? 3 : 0) - (is_before[1] ? kFieldPitch : 0);
    const T* const low = (is_before[2] ? ring.before : ring.here) + cell;
    const T* const high = (is_before[2] ? ring.here : ring.behind) + cell;
    const auto mix = [](T a, T b, T f) { return fma(f, b - a, a); };
#pragma unroll
    for (int c = 0; c < 3; ++c) {
      const auto plane = [&](const T* at) {
        return mix(mix(at[c], at[c + 3], fraction[0]),
            mix(at[c + kFieldPitch], at[c + kFieldPitch + 3], fraction[0]), fraction[1]);
      };
      sum[c] = d[c] + mix(plane(low), plane(high), fraction[2]);
    }
  }
};

template <class T>
__global__ __launch_bounds__(Sizes<T>::threads,
    sizeof(T) == sizeof(float) ? 3 : 2) void compose_kernel(const SIMILIS_GRID_CONSTANT Level<T> p,
    const SIMILIS_GRID_CONSTANT Tiles tiles, const Iteration at,
    const SIMILIS_GRID_CONSTANT Composition<T> by) {
  constexpr bool kIsF32 = sizeof(T) == sizeof(float);
  constexpr int kThreads = Sizes<T>::threads, kLoads = Sizes<T>::loads, kWarps = Sizes<T>::warps,
                kTileRows = Sizes<T>::rows, kFieldPlane = Sizes<T>::field_plane,
                kSumPlane = Sizes<T>::sum_plane;
  if (!at.runs(p.state)) return;
  SIMILIS_DYNAMIC_SHARED(std::byte, memory, 16);
  T* const ring = reinterpret_cast<T*>(memory);
  T* const sums = ring + kRing * kFieldPlane;  // two planes
  Record& record = p.state->records[at.record];
  const double largest = kIsF32 ? sqrt(static_cast<double>(bits_as<float>(record.largest)))
                                : without_last_digits(sqrt(bits_as<double>(record.largest_f64)));
  const int t = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x);
  if (!(largest > 0) || !isfinite(largest)) {
    // Blocks that start later stop at the limit or here.
    if (t == 0 && block == 0) {
      record.is_flat = 1;
      p.state->limit = at.number - 1;
    }
    return;
  }
  const auto factor = static_cast<T>(by.step / largest);
  const double unit = kIsF32 ? 0 : rounding_unit(largest);
  if (!kIsF32 && t == 0 && block == 0) p.state->g_unit = unit;
  const Rounding<T> rounded_g(unit), rounded_u(kIsF32 ? 0 : rounding_unit(1));
  const Place of(p, tiles);
  const int x0 = of.x0, y0 = of.y0, z0 = of.z0, z1 = of.z1;
  const int row = t / kPairThreads, column = t % kPairThreads * kPair, x = x0 + column,
            y = y0 + row;
  const bool smooths = row < kTileRows && column < kTileColumns;
  const bool is_mine = smooths && x < p.size[0] && y < p.size[1], has_neighbour = x + 1 < p.size[0];
  const std::int64_t plane_voxels = std::int64_t{p.size[0]} * p.size[1];
  const std::int64_t plane_numbers = 3 * plane_voxels;
  const int last_plane = p.size[2] - 1;
  // Numbers of a plane of u that this thread brings; voxels outside are those at the border.
  unsigned offsets[kLoads];
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    const int number = t + i * kThreads, of_row = number / kFieldPitch,
              e = number - of_row * kFieldPitch, of_column = e / 3;
    const int from_x = min(max(x0 - kRim + of_column, 0), p.size[0] - 1),
              from_y = min(max(y0 - kRim + of_row, 0), p.size[1] - 1);
    offsets[i] = static_cast<unsigned>((from_y * p.size[0] + from_x) * 3 + e - 3 * of_column);
  }
  const int first = max(z0 - 1, 0), last = min(z1, last_plane);
  // Pointers move from plane to plane: places that are formed anew cost more than all arithmetic.
  const T *coming = by.u + max(first - 1, 0) * plane_numbers,
          *coming_g = by.g + first * plane_numbers;
  int coming_z = first - 1;
  T next_u[kLoads];
  const auto fetch = [&] {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const bool exists = (i + 1) * kThreads <= kFieldPlane || t + i * kThreads < kFieldPlane;
      next_u[i] = exists ? coming[offsets[i]] : 0;
    }
    if (coming_z >= 0 && coming_z < last_plane) coming += plane_numbers;
    ++coming_z;
  };
  const auto store = [&](T* plane) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if ((i + 1) * kThreads <= kFieldPlane || t + i * kThreads < kFieldPlane) {
        plane[t + i * kThreads] = next_u[i];
      }
    }
  };
  const int warp = t / kWarp, lane = t % kWarp;
  const SumPlace<T> places[kSumsOfThread] = {
      {p, x0, y0, warp, lane}, {p, x0, y0, warp + kWarps, lane}};
  const int own_sum = warp * kPitch + 3 * lane;
  const bool has_sum = lane < kSumColumns;
  T next_g[kSumsOfThread][3];
  const auto fetch_g = [&] {
#pragma unroll
    for (int i = 0; i < kSumsOfThread; ++i) {
#pragma unroll
      for (int c = 0; c < 3; ++c) next_g[i][c] = rounded_g(coming_g[places[i].number + c]);
    }
    coming_g += plane_numbers;
  };
  T *before_plane = ring, *here_plane = ring + kFieldPlane, *behind_plane = ring + 2 * kFieldPlane,
    *free_plane = ring + 3 * kFieldPlane;
  fetch();
  store(before_plane);
  fetch();
  store(here_plane);
  fetch();
  store(behind_plane);
  fetch();
  fetch_g();
  __syncthreads();
  const T centre = by.centre, beside = by.beside;
  constexpr int kNumbers = 3 * kPair;  // of a thread's vectors
  T before[kNumbers] = {}, here[kNumbers] = {};
  T* to = by.to + z0 * plane_numbers + 3 * (std::int64_t{y} * p.size[0] + x);
  const bool stores_twos = p.size[0] % 2 == 0;  // all vectors of a thread are aligned then
  // One step more where the plane behind the last is that itself.
  for (int z = first; z <= z1; ++z) {
    T next[kNumbers] = {};
    if (z <= last) {
      store(free_plane);  // the plane behind those that this step reads
      fetch();
      T* const plane = sums + (z & 1) * kSumPlane;
      const RingPlanes<T> about{before_plane, here_plane, behind_plane};
      const T least_z = z > 0 ? -1 : 0, most_z = z < last_plane ? kMost<T> : 0;
      if (has_sum) {
#pragma unroll
        for (int i = 0; i < kSumsOfThread; ++i) {
          places[i].compose(
              next_g[i], factor, least_z, most_z, about, plane + own_sum + i * kWarps * kPitch);
        }
      }
      if (z < last) fetch_g();
      __syncthreads();
      if (smooths) {
        const T* const own = plane + row * kPitch + 3 * column;
        T along_y[kNumbers + 6];
#pragma unroll
        for (int i = 0; i < kNumbers + 6; i += 2) {
          const auto two = [&](int dy) {
            return *reinterpret_cast<const Two<T>*>(own + dy * kPitch + i);
          };
          const Two<T> low = two(0), middle = two(1), high = two(2);
          along_y[i] = fma(centre, middle.x, beside * (low.x + high.x));
          along_y[i + 1] = fma(centre, middle.y, beside * (low.y + high.y));
        }
#pragma unroll
        for (int c = 0; c < kNumbers; ++c) {
          next[c] = fma(centre, along_y[c + 3], beside * (along_y[c] + along_y[c + 6]));
        }
      }
    } else {
#pragma unroll
      for (int c = 0; c < kNumbers; ++c) next[c] = here[c];
    }
    if (z == 0) {
#pragma unroll
      for (int c = 0; c < kNumbers; ++c) here[c] = next[c];
    }
    const int out = z - 1;
    if (out >= z0 && is_mine) {
      T result[kNumbers];
#pragma unroll
      for (int c = 0; c < kNumbers; ++c) {
        result[c] = rounded_u(fma(centre, here[c], beside * (before[c] + next[c])));
      }
      if (stores_twos) {
#pragma unroll
        for (int c = 0; c < kNumbers; c += 2) {
          *reinterpret_cast<Two<T>*>(to + c) = {result[c], result[c + 1]};
        }
      } else {
#pragma unroll
        for (int c = 0; c < kNumbers; ++c) {
          if (c < 3 || has_neighbour) to[c] = result[c];
        }
      }
      to += plane_numbers;
    }
#pragma unroll
    for (int c = 0; c < kNumbers; ++c) {
      before[c] = here[c];
      here[c] = next[c];
    }
    T* const read = before_plane;
    before_plane = here_plane;
    here_plane = behind_plane;
    behind_plane = free_plane;
    free_plane = read;
  }
}

}  // namespace

template <class T>
void launch_compose(const Level<T>& level, Iteration at, double step, const Elastic& elastic,
    const T* g, const T* u, T* to, const Execution& exec) {
  constexpr int kThreads = Sizes<T>::threads, kBytes = Sizes<T>::shared_bytes;
  constexpr TileShape kTileShape{
      .columns = kTileColumns, .rows = Sizes<T>::rows, .threads = kThreads};
  const auto kernel = compose_kernel<T>;
  gpu::allow_shared_bytes(kernel, kBytes);
  const Tiles tiles = best_tiles(level.size, 3, level.device, kernel, kTileShape, kBytes);
  gpu::launch("register", exec.queue.handle, static_cast<unsigned>(tiles.count()), kThreads, kBytes,
      kernel, level, tiles, at,
      Composition<T>{
          g, u, to, step, static_cast<T>(elastic.centre), static_cast<T>(elastic.beside)});
}

template void launch_compose(const Level<float>&, Iteration, double, const Elastic&, const float*,
    const float*, float*, const Execution&);
template void launch_compose(const Level<double>&, Iteration, double, const Elastic&, const double*,
    const double*, double*, const Execution&);

}  // namespace similis::registration_internal::cuda
