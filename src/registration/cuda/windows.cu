// SPDX-License-Identifier: Apache-2.0
// LNCC and its derivative by J, in two passes. Both march along z through a tile of a plane:
//
//   windows  F, J with a rim ─> sums of x, then of y, of 6 products ─> ring of planes
//            ─> averages over voxels that count ─> lncc/formula.h ─> 3 slopes a voxel; the value
//   slopes   the 3 slopes likewise ─> ∂/∂J, and NCC's, times ∇M at A(x + u) ─> g
//
// A thread of `windows` takes two voxels, neighbours along y, and one of `slopes` takes one: there
// the other loads of two voxels need more registers than that saves.
//
// Images are in [0, 1], which f32 sums of one window hold to 1e-5 of smooth_dr·k. A voxel whose J
// is NaN does not count: it is 0 in all sums, and has no slope. In f64 a block fits 48 KB of shared
// memory for windows of 3 and 5.
#include "src/lncc/formula.h"
#include "src/registration/cuda/cell.cuh"
#include "src/registration/cuda/fused.h"
#include "src/registration/cuda/last_block.cuh"
#include "src/registration/cuda/rounding.cuh"
#include "src/registration/cuda/tiles.cuh"

namespace similis::registration_internal::cuda {
namespace {

constexpr int kRun = 4;  // sums along x that a thread forms at once
template <class T> constexpr T kSmoothing = static_cast<T>(1e-5);  // LnccOptions' nr and dr
template <class T> constexpr bool kIsF32 = sizeof(T) == sizeof(float);

// Blocks of a multiprocessor, which bound the registers of a thread.
template <int radius, class T> constexpr int kBlocks = kIsF32<T> ? radius < 3 ? 3 : 2 : 1;
// Likewise where a thread takes two voxels.
template <int radius, class T> constexpr int kPairBlocks = kIsF32<T>&& radius < 3 ? 2 : 1;

// 16 bytes that are loaded and stored at once.
template <class T> struct alignas(16) Together { T values[16 / sizeof(T)]; };

// The extents of a tile with its rim.
template <int radius, int own_rows = kRows> struct Rim {
  static constexpr int rows = own_rows + 2 * radius;
  static constexpr int columns = kColumns + 2 * radius;
  static constexpr int vectors = (kRun + 2 * radius + kRun - 1) / kRun;  // that a run reads
  static constexpr int pitch = kColumns - kRun + kRun * vectors;
  static constexpr int runs = rows * (kColumns / kRun);
};

// The voxels of a plane that a thread brings to a tile with its rim, while the plane before is at
// work. Pointers move from plane to plane: places that are formed anew cost more than all sums.
template <class T, int radius, int maps, int own_rows = kRows> class Coming {
  using R = Rim<radius, own_rows>;

 public:
  static constexpr int kCount = (R::rows * R::columns + kTile - 1) / kTile;

  // The first plane is the tile's first of its rim.
  __device__ Coming(const Level<T>& p, const Place& place, const T* const (&of)[maps])
      : z_(place.z0 - radius), plane_(std::int64_t{p.size[0]} * p.size[1]) {
#pragma unroll
    for (int q = 0; q < maps; ++q) from_[q] = of[q] + max(z_, 0) * plane_;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int number = static_cast<int>(threadIdx.x) + i * kTile, row = number / R::columns,
                column = number - row * R::columns;
      const int x = place.x0 - radius + column, y = place.y0 - radius + row;
      exists_[i] = has(i) && x >= 0 && x < p.size[0] && y >= 0 && y < p.size[1];
      at_[i] = exists_[i] ? y * p.size[0] + x : 0;
      to_[i] = row * R::pitch + column;
    }
  }

  // outside: what a voxel has that no grid has.
  __device__ __forceinline__ void fetch(const Level<T>& p, const T (&outside)[maps]) {
    const bool is_plane = z_ >= 0 && z_ < p.size[2];
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
#pragma unroll
      for (int q = 0; q < maps; ++q) {
        values_[i][q] = is_plane && exists_[i] ? from_[q][at_[i]] : outside[q];
      }
    }
    if (z_ >= 0 && z_ + 1 < p.size[2]) {
#pragma unroll
      for (int q = 0; q < maps; ++q) from_[q] += plane_;
    }
    ++z_;
  }

  // store(place in the tile, values) for each voxel that was fetched.
  template <class Store> __device__ __forceinline__ void each(const Store& store) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (has(i)) store(to_[i], values_[i]);
    }
  }

 private:
  static __device__ bool has(int i) {
    constexpr int kAll = R::rows * R::columns;
    return (i + 1) * kTile <= kAll || static_cast<int>(threadIdx.x) + i * kTile < kAll;
  }

  int z_;
  std::int64_t plane_;
  const T* from_[maps];
  int at_[kCount], to_[kCount];
  bool exists_[kCount];
  T values_[kCount][maps];
};

// sums[o] = Σ_k values[o + k], k ≤ 2·radius. Neighbouring sums share what all of them hold.
template <int radius, class T, int count>
__device__ __forceinline__ void run_sums(const T (&values)[count], T (&sums)[kRun]) {
  static_assert(kRun == 4);
  T shared = radius > 1 ? values[3] : 0;
#pragma unroll
  for (int k = 4; k <= 2 * radius; ++k) shared += values[k];
  const T before = values[1] + values[2], behind = values[2 * radius + 1] + values[2 * radius + 2];
  sums[0] = shared + (values[0] + before);
  sums[1] = shared + (before + values[2 * radius + 1]);
  sums[2] = shared + (values[2] + behind);
  sums[3] = shared + (behind + values[2 * radius + 3]);
}

// from, to: aligned to 16 bytes in shared memory.
template <class T, int count>
__device__ __forceinline__ void load_run(const T* from, T (&to)[count]) {
  constexpr int kAtOnce = 16 / sizeof(T);
#pragma unroll
  for (int i = 0; i < count; i += kAtOnce) {
    const auto together = *reinterpret_cast<const Together<T>*>(from + i);
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) to[i + k] = together.values[k];
  }
}

template <class T> __device__ __forceinline__ void store_run(const T (&run)[kRun], T* to) {
  constexpr int kAtOnce = 16 / sizeof(T);
#pragma unroll
  for (int i = 0; i < kRun; i += kAtOnce) {
    Together<T> together;
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) together.values[k] = run[i + k];
    *reinterpret_cast<Together<T>*>(to + i) = together;
  }
}

// Sums of a thread's own window: along y from shared memory, along z by a ring of planes.
template <class T, int radius, int maps> struct OwnWindow {
  static constexpr int kWindow = 2 * radius + 1;
  T ring[kWindow][maps] = {};

  __device__ __forceinline__ void add(
      int slot, const T (&sums)[maps][Rim<radius>::rows][kColumns], T (&window)[maps]) {
    const int row = static_cast<int>(threadIdx.x) / kColumns,
              column = static_cast<int>(threadIdx.x) % kColumns;
#pragma unroll
    for (int q = 0; q < maps; ++q) {
      T sum = sums[q][row][column];
#pragma unroll
      for (int dy = 1; dy < kWindow; ++dy) sum += sums[q][row + dy][column];
      ring[slot][q] = sum;
      window[q] = ring[0][q];
#pragma unroll
      for (int i = 1; i < kWindow; ++i) window[q] += ring[i][q];
    }
  }
};

constexpr int kPair = 2;  // neighbours along y that a thread of `windows` takes
constexpr int kPairRows = kPair * kRows;

// Sums of the windows of a thread's pair. Rows that both windows share are added once, so that
// two windows read 2·radius + 2 sums of a plane and not 4·radius + 2.
template <class T, int radius, int maps> struct PairWindows {
  static constexpr int kWindow = 2 * radius + 1;
  T ring[kWindow][maps][kPair] = {};

  __device__ __forceinline__ void add(int slot,
      const T (&sums)[maps][Rim<radius, kPairRows>::rows][kColumns], T (&window)[kPair][maps]) {
    const int row = kPair * (static_cast<int>(threadIdx.x) / kColumns),
              column = static_cast<int>(threadIdx.x) % kColumns;
#pragma unroll
    for (int q = 0; q < maps; ++q) {
      T shared = sums[q][row + 1][column];
#pragma unroll
      for (int dy = 2; dy < kWindow; ++dy) shared += sums[q][row + dy][column];
      ring[slot][q][0] = sums[q][row][column] + shared;
      ring[slot][q][1] = shared + sums[q][row + kWindow][column];
#pragma unroll
      for (int v = 0; v < kPair; ++v) {
        window[v][q] = ring[0][q][v];
#pragma unroll
        for (int i = 1; i < kWindow; ++i) window[v][q] += ring[i][q][v];
      }
    }
  }
};

// One thread, once all blocks are done.
template <class T> __device__ void finish(const Level<T>& p, Iteration at, double sum) {
  State& state = *p.state;
  const double value = static_cast<double>(p.lncc_weight) * sum / state.count +
                       static_cast<double>(p.ncc_weight) * state.pearson;
  const double loss = state.count > 0 ? -value : INFINITY;
  constexpr int kKept = sizeof(state.losses) / sizeof(double);
  const int seen = state.losses_seen++;
  state.losses[seen % kKept] = loss;
  Record& record = state.records[at.record];
  record.loss = loss;
  if (seen + 1 < kLossesOfSlope) return;
  // The slope of a line through the last losses.
  double slope = 0, squares = 0;
  for (int i = 0; i < kLossesOfSlope; ++i) {
    const double place = i - (kLossesOfSlope - 1) / 2.0;
    slope += place * state.losses[(seen + 1 - kLossesOfSlope + i) % kKept];
    squares += place * place;
  }
  if (-slope / squares < p.tolerance) {
    record.is_converged = 1;
    state.limit = at.number;
  }
}

__device__ __forceinline__ lncc_internal::Correlation<float> correlation(
    const lncc_internal::Moments<float>& m, const lncc_internal::Constants<float>& constants) {
  return lncc_internal::squared_correlation_f32(m, constants);
}
__device__ __forceinline__ lncc_internal::Correlation<double> correlation(
    const lncc_internal::Moments<double>& m, const lncc_internal::Constants<double>& constants) {
  return lncc_internal::squared_correlation(m, constants);
}

template <class T, int radius>
__global__ __launch_bounds__(kTile, (kPairBlocks<radius, T>)) void windows_kernel(
    const SIMILIS_GRID_CONSTANT Level<T> p, const SIMILIS_GRID_CONSTANT Tiles tiles,
    const Iteration at, T* slopes) {
  using R = Rim<radius, kPairRows>;
  constexpr int kWindow = 2 * radius + 1, kProducts = 6;
  if (!at.runs(p.state)) return;
  __shared__ __align__(16) T images[3][R::rows][R::pitch];  // F, J, 1 where it counts
  __shared__ __align__(16) T sums[kProducts][R::rows][kColumns];
  const Place place(p, tiles);
  const int t = static_cast<int>(threadIdx.x);
  constexpr T k = kWindow * kWindow * kWindow;
  const lncc_internal::Constants<T> constants{kSmoothing<T> * k, kSmoothing<T> * k};
  PairWindows<T, radius, kProducts> own_windows;
  const int row = kPair * (t / kColumns), column = t % kColumns, y = place.y0 + row;
  unsigned counted[kPair] = {};  // bit i: the own voxel of i planes before counts
  T value = 0;
  const std::int64_t plane = std::int64_t{p.size[0]} * p.size[1], voxels = p.voxels();
  std::int64_t voxel = place.z0 * plane + std::int64_t{y} * p.size[0] + place.x;
  Coming<T, radius, 2, kPairRows> coming(p, place, {p.fixed, p.j});
  coming.fetch(p, {0, NAN});
  for (int z0 = place.z0 - radius; z0 < place.z1 + radius; z0 += kWindow) {
#pragma unroll
    for (int slot = 0; slot < kWindow; ++slot) {
      const int z = z0 + slot;
      if (z >= place.z1 + radius) break;
      coming.each([&](int to, const T(&of)[2]) {
        const bool counts = !isnan(of[1]);
        (&images[0][0][0])[to] = counts ? of[0] : 0;
        (&images[1][0][0])[to] = counts ? of[1] : 0;
        (&images[2][0][0])[to] = counts ? 1 : 0;
      });
      coming.fetch(p, {0, NAN});
      __syncthreads();
#pragma unroll
      for (int v = 0; v < kPair; ++v) {
        counted[v] =
            counted[v] << 1 | (images[2][row + v + radius][column + radius] != 0 ? 1u : 0u);
      }
#pragma unroll
      for (int i = 0; i < (2 * R::runs + kTile - 1) / kTile; ++i) {
        const int task = t + i * kTile;
        if (task >= 2 * R::runs) break;
        const int number = task % R::runs, of_row = number / (kColumns / kRun),
                  of_column = number % (kColumns / kRun) * kRun;
        T f[kRun * R::vectors], j[kRun * R::vectors];
        load_run(&images[0][of_row][of_column], f);
        load_run(&images[1][of_row][of_column], j);
        const auto store = [&](int q, const T(&values)[kRun * R::vectors]) {
          T run[kRun];
          run_sums<radius>(values, run);
          store_run(run, &sums[q][of_row][of_column]);
        };
        if (task < R::runs) {
          T w[kRun * R::vectors];
          load_run(&images[2][of_row][of_column], w);
          store(0, w);
          store(1, f);
          store(2, j);
        } else {
          T fj[kRun * R::vectors];
#pragma unroll
          for (int e = 0; e < kRun * R::vectors; ++e) {
            fj[e] = f[e] * j[e];
            f[e] *= f[e];
            j[e] *= j[e];
          }
          store(3, f);
          store(4, j);
          store(5, fj);
        }
      }
      __syncthreads();
      T windows[kPair][kProducts];
      own_windows.add(slot, sums, windows);
      const int out = z - radius;
      if (out < place.z0 || place.x >= p.size[0]) continue;
#pragma unroll
      for (int v = 0; v < kPair; ++v) {
        if (y + v >= p.size[1]) break;
        const T(&window)[kProducts] = windows[v];
        T by_mean = 0, by_square = 0, by_product = 0;
        if ((counted[v] >> radius & 1) != 0) {
          const T inverse = window[0] == k ? 1 / k : 1 / window[0];
          const T f = window[1] * inverse, j = window[2] * inverse;
          const auto c =
              correlation(lncc_internal::Moments<T>{.a = k * fma(-f, j, window[5] * inverse),
                              .b = k * fma(-f, f, window[3] * inverse),
                              .c = k * fma(-j, j, window[4] * inverse)},
                  constants);
          value += c.value;
          const T scale = p.lncc_weight * k * inverse;
          by_mean = -scale * fma(2 * c.gradient.c, j, c.gradient.a * f);
          by_square = 2 * scale * c.gradient.c;
          by_product = scale * c.gradient.a;
        }
        T* const to = slopes + voxel + v * p.size[0];
        to[0] = by_mean;
        to[voxels] = by_square;
        to[2 * voxels] = by_product;
      }
      voxel += plane;
    }
  }
  double all[2];
  const double own[1] = {static_cast<double>(value)};
  if (!is_last_block<1>(own, 0, p.partials, &p.state->tickets[1], all)) return;
  if (t == 0) finish(p, at, all[0]);
}

template <class T, int radius>
__global__ __launch_bounds__(kTile, (kBlocks<radius, T>)) void slopes_kernel(
    const SIMILIS_GRID_CONSTANT Level<T> p, const SIMILIS_GRID_CONSTANT Tiles tiles,
    const Iteration at, const T* slopes, const T* u, T* g) {
  using R = Rim<radius>;
  constexpr int kWindow = 2 * radius + 1, kSlopes = 3;
  if (!at.runs(p.state)) return;
  __shared__ __align__(16) T maps[kSlopes][R::rows][R::pitch];
  __shared__ __align__(16) T sums[kSlopes][R::rows][kColumns];
  const Place place(p, tiles);
  const int t = static_cast<int>(threadIdx.x);
  const auto by_f = static_cast<T>(p.state->by_f), by_j = static_cast<T>(p.state->by_j),
             mean_f = static_cast<T>(p.state->mean_f), mean_j = static_cast<T>(p.state->mean_j);
  const Rounding<T> rounded(p.state->g_unit);
  OwnWindow<T, radius, kSlopes> own_window;
  const std::int64_t plane = std::int64_t{p.size[0]} * p.size[1], voxels = p.voxels(),
                     own = place.z0 * plane +
                           std::int64_t{min(place.y, p.size[1] - 1)} * p.size[0] +
                           min(place.x, p.size[0] - 1);
  Coming<T, radius, kSlopes> coming(p, place, {slopes, slopes + voxels, slopes + 2 * voxels});
  // The own voxel of the plane after this one: its loads, and those of M's corners, are under way
  // while the sums of a plane are formed. A gradient that was read where it is written kept the
  // kernel waiting for half of its time.
  auto voxel = static_cast<unsigned>(own);
  const T *own_u = u + 3 * own, *own_g = g + 3 * own;
  T* to = g + 3 * own;
  T next_u[3], next_g[3] = {}, next_j, next_f;
  const auto fetch_own = [&] {
    next_j = p.j[voxel];
    next_f = p.fixed[voxel];
#pragma unroll
    for (int c = 0; c < 3; ++c) {
      next_u[c] = own_u[c];
      if (p.momentum != 0) next_g[c] = own_g[c];
    }
  };
  coming.fetch(p, {0, 0, 0});
  fetch_own();
  for (int z0 = place.z0 - radius; z0 < place.z1 + radius; z0 += kWindow) {
#pragma unroll
    for (int slot = 0; slot < kWindow; ++slot) {
      const int z = z0 + slot;
      if (z >= place.z1 + radius) break;
      const int out = z - radius;
      const T j = next_j, f = next_f;
      const T moved[3] = {static_cast<T>(place.x) + next_u[0], static_cast<T>(place.y) + next_u[1],
          static_cast<T>(out) + next_u[2]};
      const Cell<T> cell(p, moved);
      T before[3];  // of the gradient
#pragma unroll
      for (int c = 0; c < 3; ++c) before[c] = rounded(next_g[c]);
      T corner[8] = {};
      if (out >= place.z0) {
        if (!isnan(j)) cell.load(p, p.moving, corner);
        if (out + 1 < place.z1) {
          voxel += static_cast<unsigned>(plane);
          own_u += 3 * plane;
          own_g += 3 * plane;
          fetch_own();
        }
      }
      coming.each([&](int to, const T(&of)[kSlopes]) {
#pragma unroll
        for (int q = 0; q < kSlopes; ++q) (&maps[q][0][0])[to] = of[q];
      });
      coming.fetch(p, {0, 0, 0});
      __syncthreads();
#pragma unroll
      for (int i = 0; i < (kSlopes * R::runs + kTile - 1) / kTile; ++i) {
        const int task = t + i * kTile;
        if (task >= kSlopes * R::runs) break;
        const int q = task / R::runs, number = task - q * R::runs;
        const int row = number / (kColumns / kRun), first = number % (kColumns / kRun) * kRun;
        T values[kRun * R::vectors], run[kRun];
        load_run(&maps[q][row][first], values);
        run_sums<radius>(values, run);
        store_run(run, &sums[q][row][first]);
      }
      __syncthreads();
      T window[kSlopes];
      own_window.add(slot, sums, window);
      if (out < place.z0 || !place.is_mine) continue;
      T slope[3] = {};
      if (!isnan(j)) {
        const T by_value = fma(j, window[1], fma(f, window[2], window[0])) +
                           fma(by_f, f - mean_f, by_j * (j - mean_j));
        cell.slope(p, corner, slope);
#pragma unroll
        for (T& number : slope) number *= by_value;
      }
#pragma unroll
      for (int c = 0; c < 3; ++c) to[c] = fma(p.momentum, before[c], slope[c]);
      to += 3 * plane;
    }
  }
}

// The kernel of a window size; null where there is none.
template <class T> auto windows_kernel_of(int window_size) {
  if constexpr (kIsF32<T>) {
    if (window_size == 7) return windows_kernel<T, 3>;
  }
  return window_size == 3 ? windows_kernel<T, 1> : windows_kernel<T, 2>;
}
template <class T> auto slopes_kernel_of(int window_size) {
  if constexpr (kIsF32<T>) {
    if (window_size == 7) return slopes_kernel<T, 3>;
  }
  return window_size == 3 ? slopes_kernel<T, 1> : slopes_kernel<T, 2>;
}

}  // namespace

template <class T> std::int64_t windows_numbers(const Level<T>& level) {
  return Tiles(level.size, kLeastDepth).count() * 2;
}

template <class T>
void launch_windows(
    const Level<T>& level, Iteration at, int window_size, T* slopes, const Execution& exec) {
  const auto kernel = windows_kernel_of<T>(window_size);
  const Tiles tiles =
      best_tiles(level.size, window_size - 1, level.device, kernel, {.rows = kPairRows});
  gpu::launch("register", exec.queue.handle, static_cast<unsigned>(tiles.count()), kTile, 0, kernel,
      level, tiles, at, slopes);
}

template <class T>
void launch_slopes(const Level<T>& level, Iteration at, int window_size, const T* slopes,
    const T* u, T* g, const Execution& exec) {
  const auto kernel = slopes_kernel_of<T>(window_size);
  const Tiles tiles = best_tiles(level.size, window_size - 1, level.device, kernel);
  gpu::launch("register", exec.queue.handle, static_cast<unsigned>(tiles.count()), kTile, 0, kernel,
      level, tiles, at, slopes, u, g);
}

template std::int64_t windows_numbers(const Level<float>&);
template std::int64_t windows_numbers(const Level<double>&);
template void launch_windows(const Level<float>&, Iteration, int, float*, const Execution&);
template void launch_windows(const Level<double>&, Iteration, int, double*, const Execution&);
template void launch_slopes(
    const Level<float>&, Iteration, int, const float*, const float*, float*, const Execution&);
template void launch_slopes(
    const Level<double>&, Iteration, int, const double*, const double*, double*, const Execution&);

}  // namespace similis::registration_internal::cuda
