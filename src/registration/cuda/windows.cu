// SPDX-License-Identifier: Apache-2.0
// LNCC and its derivative by J, in two passes. Both march along z through a tile of a plane:
//
//   windows  F, J with a rim ─> sums of x, then of y, of 6 products ─> ring of planes
//            ─> averages over voxels that count ─> lncc/formula.h ─> 3 slopes a voxel; the value
//   slopes   the 3 slopes likewise ─> ∂/∂J, and NCC's, times ∇M at A(x + u) ─> g
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

// What a tile with its rim takes.
template <int radius> struct Rim {
  static constexpr int rows = kRows + 2 * radius;
  static constexpr int columns = kColumns + 2 * radius;
  static constexpr int vectors = (kRun + 2 * radius + kRun - 1) / kRun;  // that a run reads
  static constexpr int pitch = kColumns - kRun + kRun * vectors;
  static constexpr int runs = rows * (kColumns / kRun);
};

// The voxels of a plane that a thread brings to a tile with its rim: their places in the plane, -1
// outside of the grid.
template <int radius> struct Brought {
  static constexpr int count = (Rim<radius>::rows * Rim<radius>::columns + kTile - 1) / kTile;
  int at[count];

  __device__ Brought(const Level& p, const Place& place) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const int number = static_cast<int>(threadIdx.x) + i * kTile,
                row = number / Rim<radius>::columns, column = number - row * Rim<radius>::columns;
      const int x = place.x0 - radius + column, y = place.y0 - radius + row;
      const bool exists =
          row < Rim<radius>::rows && x >= 0 && x < p.size[0] && y >= 0 && y < p.size[1];
      at[i] = exists ? y * p.size[0] + x : -1;
    }
  }
};

// sums[o] = Σ_k values[o + k], k ≤ 2·radius.
template <int radius, int count>
__device__ __forceinline__ float4 run_sums(const float (&values)[count]) {
  float sums[kRun];
#pragma unroll
  for (int o = 0; o < kRun; ++o) {
    sums[o] = values[o];
#pragma unroll
    for (int k = 1; k <= 2 * radius; ++k) sums[o] += values[o + k];
  }
  return make_float4(sums[0], sums[1], sums[2], sums[3]);
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
__global__ __launch_bounds__(kTile) void windows_kernel(const SIMILIS_GRID_CONSTANT Level p,
    const SIMILIS_GRID_CONSTANT Tiles tiles, const Iteration at, float* slopes) {
  using R = Rim<radius>;
  constexpr int kWindow = 2 * radius + 1, kProducts = 6;
  constexpr int kLoads = Brought<radius>::count;
  if (!at.runs(p.state)) return;
  __shared__ __align__(16) float images[3][R::rows][R::pitch];  // F, J, 1 where it counts
  __shared__ __align__(16) float sums[kProducts][R::rows][kColumns];
  const Place place(p, tiles);
  const int t = static_cast<int>(threadIdx.x);
  const float k = static_cast<float>(kWindow * kWindow * kWindow);
  const lncc_internal::Constants<float> constants{kSmoothing * k, kSmoothing * k};
  const std::int64_t voxels = p.voxels();
  float ring[kWindow][kProducts];
#pragma unroll
  for (int i = 0; i < kWindow; ++i) {
#pragma unroll
    for (int q = 0; q < kProducts; ++q) ring[i][q] = 0;
  }
  unsigned counted = 0;  // bit i: the own voxel of i planes before counts
  float value = 0;
  const Brought<radius> brought(p, place);
  const std::int64_t plane = std::int64_t{p.size[0]} * p.size[1];
  float next_f[kLoads], next_j[kLoads];
  const auto fetch = [&](int z) {
    const bool exists = z >= 0 && z < p.size[2];
    const float *const f = p.fixed + z * plane, *const j = p.j + z * plane;
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      next_f[i] = 0;
      next_j[i] = NAN;
      if (!exists || brought.at[i] < 0) continue;
      next_f[i] = f[brought.at[i]];
      next_j[i] = j[brought.at[i]];
    }
  };
  fetch(place.z0 - radius);
  for (int z0 = place.z0 - radius; z0 < place.z1 + radius; z0 += kWindow) {
#pragma unroll
    for (int slot = 0; slot < kWindow; ++slot) {
      const int z = z0 + slot;
      if (z >= place.z1 + radius) break;
#pragma unroll
      for (int i = 0; i < kLoads; ++i) {
        const int number = t + i * kTile;
        if (number >= R::rows * R::columns) continue;
        const int row = number / R::columns, column = number - row * R::columns;
        const bool counts = !isnan(next_j[i]);
        images[0][row][column] = counts ? next_f[i] : 0;
        images[1][row][column] = counts ? next_j[i] : 0;
        images[2][row][column] = counts ? 1 : 0;
      }
      fetch(z + 1);
      __syncthreads();
      counted =
          counted << 1 | (images[2][t / kColumns + radius][t % kColumns + radius] != 0 ? 1u : 0u);
      if (t < 2 * R::runs) {
        const int run = t % R::runs, row = run / (kColumns / kRun),
                  column = run % (kColumns / kRun) * kRun;
        float f[kRun * R::vectors], j[kRun * R::vectors];
        load_run<R::vectors>(&images[0][row][column], f);
        load_run<R::vectors>(&images[1][row][column], j);
        const auto store = [&](int q, const float(&values)[kRun * R::vectors]) {
          *reinterpret_cast<float4*>(&sums[q][row][column]) = run_sums<radius>(values);
        };
        if (t < R::runs) {
          float w[kRun * R::vectors];
          load_run<R::vectors>(&images[2][row][column], w);
          store(0, w);
          store(1, f);
          store(2, j);
        } else {
          float fj[kRun * R::vectors];
#pragma unroll
          for (int i = 0; i < kRun * R::vectors; ++i) {
            fj[i] = f[i] * j[i];
            f[i] *= f[i];
            j[i] *= j[i];
          }
          store(3, f);
          store(4, j);
          store(5, fj);
        }
      }
      __syncthreads();
      float window[kProducts];
#pragma unroll
      for (int q = 0; q < kProducts; ++q) {
        float sum = 0;
#pragma unroll
        for (int dy = 0; dy < kWindow; ++dy) sum += sums[q][t / kColumns + dy][t % kColumns];
        ring[slot][q] = sum;
        window[q] = 0;
#pragma unroll
        for (int i = 0; i < kWindow; ++i) window[q] += ring[i][q];
      }
      const int out = z - radius;
      if (out < place.z0 || !place.is_mine) continue;
      float by_mean = 0, by_square = 0, by_product = 0;
      if ((counted >> radius & 1) != 0) {
        const float inverse = 1 / window[0];
        const float f = window[1] * inverse, j = window[2] * inverse;
        const auto c = lncc_internal::squared_correlation<float>(
            {.a = k * fmaf(-f, j, window[5] * inverse),
                .b = k * fmaf(-f, f, window[3] * inverse),
                .c = k * fmaf(-j, j, window[4] * inverse)},
            constants);
        value += c.value;
        const float scale = p.lncc_weight * k * inverse;
        by_mean = -scale * fmaf(2 * c.gradient.c, j, c.gradient.a * f);
        by_square = 2 * scale * c.gradient.c;
        by_product = scale * c.gradient.a;
      }
      const std::int64_t voxel = (std::int64_t{out} * p.size[1] + place.y) * p.size[0] + place.x;
      slopes[voxel] = by_mean;
      slopes[voxel + voxels] = by_square;
      slopes[voxel + 2 * voxels] = by_product;
    }
  }
  double all[2];
  const double own[1] = {static_cast<double>(value)};
  if (!is_last_block<1>(own, 0, p.partials, &p.state->tickets[1], all)) return;
  if (t == 0) finish(p, at, all[0]);
}

template <int radius>
__global__ __launch_bounds__(kTile) void slopes_kernel(const SIMILIS_GRID_CONSTANT Level p,
    const SIMILIS_GRID_CONSTANT Tiles tiles, const Iteration at, const float* slopes,
    const float* u, const float momentum, float* g) {
  using R = Rim<radius>;
  constexpr int kWindow = 2 * radius + 1, kSlopes = 3;
  constexpr int kLoads = Brought<radius>::count;
  if (!at.runs(p.state)) return;
  __shared__ __align__(16) float maps[kSlopes][R::rows][R::pitch];
  __shared__ __align__(16) float sums[kSlopes][R::rows][kColumns];
  const Place place(p, tiles);
  const int t = static_cast<int>(threadIdx.x);
  const std::int64_t voxels = p.voxels();
  const auto by_f = static_cast<float>(p.state->by_f), by_j = static_cast<float>(p.state->by_j),
             mean_f = static_cast<float>(p.state->mean_f),
             mean_j = static_cast<float>(p.state->mean_j);
  float ring[kWindow][kSlopes];
#pragma unroll
  for (int i = 0; i < kWindow; ++i) {
#pragma unroll
    for (int q = 0; q < kSlopes; ++q) ring[i][q] = 0;
  }
  const Brought<radius> brought(p, place);
  float next[kLoads][kSlopes];
  const auto fetch = [&](int z) {
    const bool exists = z >= 0 && z < p.size[2];
    const float* const of_plane = slopes + z * (std::int64_t{p.size[0]} * p.size[1]);
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
#pragma unroll
      for (int q = 0; q < kSlopes; ++q) {
        next[i][q] = exists && brought.at[i] >= 0 ? of_plane[brought.at[i] + q * voxels] : 0;
      }
    }
  };
  // The own voxel of the plane after this one: its loads, and those of M's corners, are under way
  // while the sums of a plane are formed.
  const std::int64_t plane = std::int64_t{p.size[0]} * p.size[1],
                     column = std::int64_t{min(place.y, p.size[1] - 1)} * p.size[0] +
                              min(place.x, p.size[0] - 1);
  float next_u[3], next_j, next_f;
  const auto fetch_own = [&](int z) {
    const std::int64_t voxel = min(z, p.size[2] - 1) * plane + column;
    next_j = p.j[voxel];
    next_f = p.fixed[voxel];
#pragma unroll
    for (int c = 0; c < 3; ++c) next_u[c] = u[3 * voxel + c];
  };
  fetch(place.z0 - radius);
  fetch_own(place.z0);
  for (int z0 = place.z0 - radius; z0 < place.z1 + radius; z0 += kWindow) {
#pragma unroll
    for (int slot = 0; slot < kWindow; ++slot) {
      const int z = z0 + slot;
      if (z >= place.z1 + radius) break;
      const int out = z - radius;
      const float j = next_j, f = next_f;
      const float moved[3] = {static_cast<float>(place.x) + next_u[0],
          static_cast<float>(place.y) + next_u[1], static_cast<float>(out) + next_u[2]};
      const Cell cell(p, moved);
      float corner[8] = {};
      if (out >= place.z0) {
        if (!isnan(j)) cell.load(p, p.moving, corner);
        fetch_own(out + 1);
      }
#pragma unroll
      for (int i = 0; i < kLoads; ++i) {
        const int number = t + i * kTile;
        if (number >= R::rows * R::columns) continue;
        const int row = number / R::columns, at_column = number - row * R::columns;
#pragma unroll
        for (int q = 0; q < kSlopes; ++q) maps[q][row][at_column] = next[i][q];
      }
      fetch(z + 1);
      __syncthreads();
      for (int task = t; task < kSlopes * R::runs; task += kTile) {
        const int q = task / R::runs, run = task - q * R::runs;
        const int row = run / (kColumns / kRun), first = run % (kColumns / kRun) * kRun;
        float values[kRun * R::vectors];
        load_run<R::vectors>(&maps[q][row][first], values);
        *reinterpret_cast<float4*>(&sums[q][row][first]) = run_sums<radius>(values);
      }
      __syncthreads();
      float window[kSlopes];
#pragma unroll
      for (int q = 0; q < kSlopes; ++q) {
        float sum = 0;
#pragma unroll
        for (int dy = 0; dy < kWindow; ++dy) sum += sums[q][t / kColumns + dy][t % kColumns];
        ring[slot][q] = sum;
        window[q] = 0;
#pragma unroll
        for (int i = 0; i < kWindow; ++i) window[q] += ring[i][q];
      }
      if (out < place.z0 || !place.is_mine) continue;
      const std::int64_t voxel = out * plane + column;
      float by_u[3] = {};
      if (!isnan(j)) {
        const float by_value = fmaf(j, window[1], fmaf(f, window[2], window[0])) +
                               fmaf(by_f, f - mean_f, by_j * (j - mean_j));
        cell.slope(p, corner, by_u);
#pragma unroll
        for (float& number : by_u) number *= by_value;
      }
#pragma unroll
      for (int c = 0; c < 3; ++c) {
        // Before the first iteration g holds anything.
        g[3 * voxel + c] = momentum > 0 ? fmaf(momentum, g[3 * voxel + c], by_u[c]) : by_u[c];
      }
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
  const Tiles tiles = best_tiles(level, window_size - 1, level.device, kernel);
  gpu::launch("register", exec.queue.handle, static_cast<unsigned>(tiles.count()), kTile, 0, kernel,
      level, tiles, at, slopes);
}

void launch_slopes(const Level& level, Iteration at, int window_size, const float* slopes,
    const float* u, double momentum, float* g, const Execution& exec) {
  const auto kernel = window_size == 3   ? slopes_kernel<1>
                      : window_size == 5 ? slopes_kernel<2>
                                         : slopes_kernel<3>;
  const Tiles tiles = best_tiles(level, window_size - 1, level.device, kernel);
  gpu::launch("register", exec.queue.handle, static_cast<unsigned>(tiles.count()), kTile, 0, kernel,
      level, tiles, at, slopes, u, static_cast<float>(momentum), g);
}

}  // namespace similis::registration_internal::cuda
