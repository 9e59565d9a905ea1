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
// is NaN does not count: it is 0 in all sums, and has no slope.
#include "src/lncc/formula.h"
#include "src/registration/cuda/cell.cuh"
#include "src/registration/cuda/fused.h"
#include "src/registration/cuda/last_block.cuh"
#include "src/registration/cuda/tiles.cuh"

namespace similis::registration_internal::cuda {
namespace {

constexpr int kRun = 4;              // sums along x that a thread forms at once
constexpr float kSmoothing = 1e-5f;  // LnccOptions' smooth_nr and smooth_dr

// Blocks of a multiprocessor, which bound the registers of a thread.
template <int radius> constexpr int kBlocks = radius < 3 ? 3 : 2;
// Likewise where a thread takes two voxels.
template <int radius> constexpr int kPairBlocks = radius < 3 ? 2 : 1;

// What a tile with its rim takes.
template <int radius, int own_rows = kRows> struct Rim {
  static constexpr int rows = own_rows + 2 * radius;
  static constexpr int columns = kColumns + 2 * radius;
  static constexpr int vectors = (kRun + 2 * radius + kRun - 1) / kRun;  // that a run reads
  static constexpr int pitch = kColumns - kRun + kRun * vectors;
  static constexpr int runs = rows * (kColumns / kRun);
};

// The voxels of a plane that a thread brings to a tile with its rim, while the plane before is at
// work. Pointers move from plane to plane: places that are formed anew cost more than all sums.
template <int radius, int maps, int own_rows = kRows> class Coming {
  using R = Rim<radius, own_rows>;

 public:
  static constexpr int kCount = (R::rows * R::columns + kTile - 1) / kTile;

  // The first plane is the tile's first of its rim.
  __device__ Coming(const Level& p, const Place& place, const float* const (&of)[maps])
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
  __device__ __forceinline__ void fetch(const Level& p, const float (&outside)[maps]) {
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
  const float* from_[maps];
  int at_[kCount], to_[kCount];
  bool exists_[kCount];
  float values_[kCount][maps];
};

// sums[o] = Σ_k values[o + k], k ≤ 2·radius. Neighbouring sums share what all of them hold.
template <int radius, int count>
__device__ __forceinline__ float4 run_sums(const float (&values)[count]) {
  static_assert(kRun == 4);
  float shared = radius > 1 ? values[3] : 0;
#pragma unroll
  for (int k = 4; k <= 2 * radius; ++k) shared += values[k];
  const float before = values[1] + values[2],
              behind = values[2 * radius + 1] + values[2 * radius + 2];
  return make_float4(shared + (values[0] + before), shared + (before + values[2 * radius + 1]),
      shared + (values[2] + behind), shared + (behind + values[2 * radius + 3]));
}

template <int vectors>
__device__ __forceinline__ void load_run(const float* from, float (&to)[kRun * vectors]) {
#pragma unroll
  for (int v = 0; v < vectors; ++v) {
    const float4 four = *reinterpret_cast<const float4*>(from + kRun * v);
    to[kRun * v] = four.x;
    to[kRun * v + 1] = four.y;
    to[kRun * v + 2] = four.z;
    to[kRun * v + 3] = four.w;
  }
}

// Sums of a thread's own window: along y from shared memory, along z by a ring of planes.
template <int radius, int maps> struct OwnWindow {
  static constexpr int kWindow = 2 * radius + 1;
  float ring[kWindow][maps] = {};

  __device__ __forceinline__ void add(
      int slot, const float (&sums)[maps][Rim<radius>::rows][kColumns], float (&window)[maps]) {
    const int row = static_cast<int>(threadIdx.x) / kColumns,
              column = static_cast<int>(threadIdx.x) % kColumns;
#pragma unroll
    for (int q = 0; q < maps; ++q) {
      float sum = sums[q][row][column];
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

// Sums of the windows of a thread's pair. What both windows hold along y is added once, so that
// two windows read 2·radius + 2 sums of a plane and not 4·radius + 2.
template <int radius, int maps> struct PairWindows {
  static constexpr int kWindow = 2 * radius + 1;
  float ring[kWindow][maps][kPair] = {};

  __device__ __forceinline__ void add(int slot,
      const float (&sums)[maps][Rim<radius, kPairRows>::rows][kColumns],
      float (&window)[kPair][maps]) {
    const int row = kPair * (static_cast<int>(threadIdx.x) / kColumns),
              column = static_cast<int>(threadIdx.x) % kColumns;
#pragma unroll
    for (int q = 0; q < maps; ++q) {
      float shared = sums[q][row + 1][column];
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
__device__ void finish(const Level& p, Iteration at, double sum) {
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

template <int radius>
__global__ __launch_bounds__(kTile, kPairBlocks<radius>) void windows_kernel(
    const SIMILIS_GRID_CONSTANT Level p, const SIMILIS_GRID_CONSTANT Tiles tiles,
    const Iteration at, float* slopes) {
  using R = Rim<radius, kPairRows>;
  constexpr int kWindow = 2 * radius + 1, kProducts = 6;
  if (!at.runs(p.state)) return;
  __shared__ __align__(16) float images[3][R::rows][R::pitch];  // F, J, 1 where it counts
  __shared__ __align__(16) float sums[kProducts][R::rows][kColumns];
  const Place place(p, tiles);
  const int t = static_cast<int>(threadIdx.x);
  constexpr float k = kWindow * kWindow * kWindow;
  const lncc_internal::Constants<float> constants{kSmoothing * k, kSmoothing * k};
  PairWindows<radius, kProducts> own_windows;
  const int row = kPair * (t / kColumns), column = t % kColumns, y = place.y0 + row;
  unsigned counted[kPair] = {};  // bit i: the own voxel of i planes before counts
  float value = 0;
  const std::int64_t plane = std::int64_t{p.size[0]} * p.size[1], voxels = p.voxels();
  std::int64_t voxel = place.z0 * plane + std::int64_t{y} * p.size[0] + place.x;
  Coming<radius, 2, kPairRows> coming(p, place, {p.fixed, p.j});
  coming.fetch(p, {0, NAN});
  for (int z0 = place.z0 - radius; z0 < place.z1 + radius; z0 += kWindow) {
#pragma unroll
    for (int slot = 0; slot < kWindow; ++slot) {
      const int z = z0 + slot;
      if (z >= place.z1 + radius) break;
      coming.each([&](int to, const float(&of)[2]) {
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
        const int run = task % R::runs, of_row = run / (kColumns / kRun),
                  of_column = run % (kColumns / kRun) * kRun;
        float f[kRun * R::vectors], j[kRun * R::vectors];
        load_run<R::vectors>(&images[0][of_row][of_column], f);
        load_run<R::vectors>(&images[1][of_row][of_column], j);
        const auto store = [&](int q, const float(&values)[kRun * R::vectors]) {
          *reinterpret_cast<float4*>(&sums[q][of_row][of_column]) = run_sums<radius>(values);
        };
        if (task < R::runs) {
          float w[kRun * R::vectors];
          load_run<R::vectors>(&images[2][of_row][of_column], w);
          store(0, w);
          store(1, f);
          store(2, j);
        } else {
          float fj[kRun * R::vectors];
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
      float windows[kPair][kProducts];
      own_windows.add(slot, sums, windows);
      const int out = z - radius;
      if (out < place.z0 || place.x >= p.size[0]) continue;
#pragma unroll
      for (int v = 0; v < kPair; ++v) {
        if (y + v >= p.size[1]) break;
        const float(&window)[kProducts] = windows[v];
        float by_mean = 0, by_square = 0, by_product = 0;
        if ((counted[v] >> radius & 1) != 0) {
          const float inverse = window[0] == k ? 1 / k : 1 / window[0];
          const float f = window[1] * inverse, j = window[2] * inverse;
          const auto c =
              lncc_internal::squared_correlation_f32({.a = k * fmaf(-f, j, window[5] * inverse),
                                                         .b = k * fmaf(-f, f, window[3] * inverse),
                                                         .c = k * fmaf(-j, j, window[4] * inverse)},
                  constants);
          value += c.value;
          const float scale = p.lncc_weight * k * inverse;
          by_mean = -scale * fmaf(2 * c.gradient.c, j, c.gradient.a * f);
          by_square = 2 * scale * c.gradient.c;
          by_product = scale * c.gradient.a;
        }
        float* const to = slopes + voxel + v * p.size[0];
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

template <int radius>
__global__ __launch_bounds__(kTile, kBlocks<radius>) void slopes_kernel(
    const SIMILIS_GRID_CONSTANT Level p, const SIMILIS_GRID_CONSTANT Tiles tiles,
    const Iteration at, const float* slopes, const float* u, float* g) {
  using R = Rim<radius>;
  constexpr int kWindow = 2 * radius + 1, kSlopes = 3;
  if (!at.runs(p.state)) return;
  __shared__ __align__(16) float maps[kSlopes][R::rows][R::pitch];
  __shared__ __align__(16) float sums[kSlopes][R::rows][kColumns];
  const Place place(p, tiles);
  const int t = static_cast<int>(threadIdx.x);
  const auto by_f = static_cast<float>(p.state->by_f), by_j = static_cast<float>(p.state->by_j),
             mean_f = static_cast<float>(p.state->mean_f),
             mean_j = static_cast<float>(p.state->mean_j);
  OwnWindow<radius, kSlopes> own_window;
  const std::int64_t plane = std::int64_t{p.size[0]} * p.size[1], voxels = p.voxels(),
                     own = place.z0 * plane +
                           std::int64_t{min(place.y, p.size[1] - 1)} * p.size[0] +
                           min(place.x, p.size[0] - 1);
  Coming<radius, kSlopes> coming(p, place, {slopes, slopes + voxels, slopes + 2 * voxels});
  // The own voxel of the plane after this one: its loads, and those of M's corners, are under way
  // while the sums of a plane are formed. A gradient that was read where it is written kept the
  // kernel waiting for half of its time.
  auto voxel = static_cast<unsigned>(own);
  const float *own_u = u + 3 * own, *own_g = g + 3 * own;
  float* to = g + 3 * own;
  float next_u[3], next_g[3] = {}, next_j, next_f;
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
      const float j = next_j, f = next_f;
      const float moved[3] = {static_cast<float>(place.x) + next_u[0],
          static_cast<float>(place.y) + next_u[1], static_cast<float>(out) + next_u[2]};
      const Cell<float> cell(p, moved);
      float before[3];  // of the gradient
#pragma unroll
      for (int c = 0; c < 3; ++c) before[c] = next_g[c];
      float corner[8] = {};
      if (out >= place.z0) {
        if (!isnan(j)) cell.load(p, p.moving, corner);
        if (out + 1 < place.z1) {
          voxel += static_cast<unsigned>(plane);
          own_u += 3 * plane;
          own_g += 3 * plane;
          fetch_own();
        }
      }
      coming.each([&](int to, const float(&of)[kSlopes]) {
#pragma unroll
        for (int q = 0; q < kSlopes; ++q) (&maps[q][0][0])[to] = of[q];
      });
      coming.fetch(p, {0, 0, 0});
      __syncthreads();
#pragma unroll
      for (int i = 0; i < (kSlopes * R::runs + kTile - 1) / kTile; ++i) {
        const int task = t + i * kTile;
        if (task >= kSlopes * R::runs) break;
        const int q = task / R::runs, run = task - q * R::runs;
        const int row = run / (kColumns / kRun), first = run % (kColumns / kRun) * kRun;
        float values[kRun * R::vectors];
        load_run<R::vectors>(&maps[q][row][first], values);
        *reinterpret_cast<float4*>(&sums[q][row][first]) = run_sums<radius>(values);
      }
      __syncthreads();
      float window[kSlopes];
      own_window.add(slot, sums, window);
      if (out < place.z0 || !place.is_mine) continue;
      float slope[3] = {};
      if (!isnan(j)) {
        const float by_value = fmaf(j, window[1], fmaf(f, window[2], window[0])) +
                               fmaf(by_f, f - mean_f, by_j * (j - mean_j));
        cell.slope(p, corner, slope);
#pragma unroll
        for (float& number : slope) number *= by_value;
      }
#pragma unroll
      for (int c = 0; c < 3; ++c) to[c] = fmaf(p.momentum, before[c], slope[c]);
      to += 3 * plane;
    }
  }
}

}  // namespace

std::int64_t windows_numbers(const Level& level) { return Tiles(level, kLeastDepth).count() * 2; }

void launch_windows(
    const Level& level, Iteration at, int window_size, float* slopes, const Execution& exec) {
  const auto kernel = window_size == 3   ? windows_kernel<1>
                      : window_size == 5 ? windows_kernel<2>
                                         : windows_kernel<3>;
  const Tiles tiles = best_tiles(level, window_size - 1, level.device, kernel, {.rows = kPairRows});
  gpu::launch("register", exec.queue.handle, static_cast<unsigned>(tiles.count()), kTile, 0, kernel,
      level, tiles, at, slopes);
}

void launch_slopes(const Level& level, Iteration at, int window_size, const float* slopes,
    const float* u, float* g, const Execution& exec) {
  const auto kernel = window_size == 3   ? slopes_kernel<1>
                      : window_size == 5 ? slopes_kernel<2>
                                         : slopes_kernel<3>;
  const Tiles tiles = best_tiles(level, window_size - 1, level.device, kernel);
  gpu::launch("register", exec.queue.handle, static_cast<unsigned>(tiles.count()), kTile, 0, kernel,
      level, tiles, at, slopes, u, g);
}

}  // namespace similis::registration_internal::cuda
