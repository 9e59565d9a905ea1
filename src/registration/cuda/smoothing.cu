// SPDX-License-Identifier: Apache-2.0
// Smoothing of the gradient of a coarse level, in f64 with zeros outside:
//
//   rows_kernel   g ─> tile of 4 rows with their rims ─> along x ─> work        shared memory
//   lines_kernel  work ─> along y ─> scratch ─> along z ─> g, its largest vector
//
// A radius is known to the compiler, so that taps are no loads; shorter lines have taps of 0. Along
// y and z a thread takes 8 outputs of one line, and a warp neighbouring lines: (8 + 2r) / 8 loads
// an output, by the caches.
#include <algorithm>
#include <cstdint>

#include "src/core/tensor/convert.h"
#include "src/gpu/cuda/vendor.h"
#include "src/registration/cuda/fused.h"

namespace similis::registration_internal::cuda {
namespace {

constexpr int kKnownRadius = 9;  // of the default's σ, 3 voxels
constexpr int kComponents = 3;
constexpr int kRowThreads = 192, kRowsAtOnce = 4;  // 64 voxels of 4 rows
constexpr int kLineThreads = 96, kOutputs = 8;     // 32 vectors, or parts of a row
constexpr int kVectors = kLineThreads / kComponents;

template <int radius> struct Taps { double of[radius + 1]; };

struct RowPass {
  const State* state;
  Iteration at;
  const double* from;
  double* to;
  int width;  // numbers of a row
  int tiles;  // of a row
  std::int64_t rows;
};

template <int radius>
__global__ __launch_bounds__(kRowThreads) void rows_kernel(
    const SIMILIS_GRID_CONSTANT RowPass p, const SIMILIS_GRID_CONSTANT Taps<radius> taps) {
  constexpr int kRim = kComponents * radius, kLoaded = kRowThreads + 2 * kRim;
  static_assert(kLoaded <= 2 * kRowThreads);
  if (!p.at.runs(p.state)) return;
  __shared__ double tile[kRowsAtOnce][kLoaded];
  const int t = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x),
            x0 = block % p.tiles * kRowThreads;
  const std::int64_t row0 = std::int64_t{block / p.tiles} * kRowsAtOnce;
#pragma unroll
  for (int r = 0; r < kRowsAtOnce; ++r) {
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int i = t + k * kRowThreads, x = x0 - kRim + i;
      const bool exists = row0 + r < p.rows && x >= 0 && x < p.width;
      if (i < kLoaded) tile[r][i] = exists ? p.from[(row0 + r) * p.width + x] : 0;
    }
  }
  __syncthreads();
  const int x = x0 + t;
#pragma unroll
  for (int r = 0; r < kRowsAtOnce; ++r) {
    const double* const own = &tile[r][t + kRim];
    double sum = taps.of[0] * own[0];
#pragma unroll
    for (int k = 1; k <= radius; ++k) {
      sum = fma(taps.of[k], own[-kComponents * k] + own[kComponents * k], sum);
    }
    if (row0 + r < p.rows && x < p.width) p.to[(row0 + r) * p.width + x] = sum;
  }
}

struct LinePass {
  const State* state;
  Iteration at;
  const double* from;
  double* to;
  int extent, runs;          // of a line
  std::int64_t lines;        // neighbours; their places are as far apart as those of a line
  int tiles;                 // of them
  unsigned long long* most;  // bits of the largest squared vector; null: it is not looked for
};

template <int radius>
__global__ __launch_bounds__(kLineThreads) void lines_kernel(
    const SIMILIS_GRID_CONSTANT LinePass p, const SIMILIS_GRID_CONSTANT Taps<radius> taps) {
  if (!p.at.runs(p.state)) return;
  const int t = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x);
  const int tile = block % p.tiles, first = block / p.tiles % p.runs * kOutputs;
  const std::int64_t plane = block / p.tiles / p.runs, line = std::int64_t{tile} * kLineThreads + t,
                     begin = plane * p.extent * p.lines + line;
  const bool is_mine = line < p.lines;
  double sums[kOutputs] = {};
  const double* value = p.from + begin + (first - radius) * p.lines;
#pragma unroll
  for (int i = 0; i < kOutputs + 2 * radius; ++i, value += p.lines) {
    const int place = first - radius + i;
    const double number = is_mine && place >= 0 && place < p.extent ? *value : 0;
#pragma unroll
    for (int o = 0; o < kOutputs; ++o) {
      const int k = i - o - radius;
      if (k >= -radius && k <= radius) sums[o] = fma(taps.of[k < 0 ? -k : k], number, sums[o]);
    }
  }
  double* to = p.to + begin + first * p.lines;
#pragma unroll
  for (int o = 0; o < kOutputs; ++o, to += p.lines) {
    if (is_mine && first + o < p.extent) *to = sums[o];
  }
  if (p.most == nullptr) return;
  __shared__ double squares[kOutputs][kLineThreads];
  __shared__ unsigned long long most;
  if (t == 0) most = 0;
#pragma unroll
  for (int o = 0; o < kOutputs; ++o) {
    squares[o][t] = is_mine && first + o < p.extent ? sums[o] * sums[o] : 0;
  }
  __syncthreads();
  // The order of bits is that of squares, and NaN is above all.
  unsigned long long own = 0;
  for (int i = t; i < kOutputs * kVectors; i += kLineThreads) {
    const double* const vector = &squares[i / kVectors][i % kVectors * kComponents];
    const auto bits = bits_as<unsigned long long>(vector[0] + vector[1] + vector[2]);
    own = bits > own ? bits : own;
  }
  atomicMax(&most, own);
  __syncthreads();
  if (t == 0) atomicMax(p.most, most);
}

template <int radius>
void smooth(const Level<double>& level, Iteration at, const std::vector<double>& given, double* g,
    double* work, double* scratch, const Execution& exec) {
  Taps<radius> taps = {};
  std::copy(given.begin(), given.end(), taps.of);
  const int width = kComponents * level.size[0];
  const std::int64_t rows = std::int64_t{level.size[1]} * level.size[2];
  const RowPass along_x{.state = level.state,
      .at = at,
      .from = g,
      .to = work,
      .width = width,
      .tiles = (width + kRowThreads - 1) / kRowThreads,
      .rows = rows};
  gpu::launch("register", exec.queue.handle,
      static_cast<unsigned>(along_x.tiles * ((rows + kRowsAtOnce - 1) / kRowsAtOnce)), kRowThreads,
      0, rows_kernel<radius>, along_x, taps);
  const auto along = [&](int extent, std::int64_t lines, std::int64_t planes, const double* from,
                         double* to, unsigned long long* most) {
    const LinePass pass{.state = level.state,
        .at = at,
        .from = from,
        .to = to,
        .extent = extent,
        .runs = (extent + kOutputs - 1) / kOutputs,
        .lines = lines,
        .tiles = static_cast<int>((lines + kLineThreads - 1) / kLineThreads),
        .most = most};
    gpu::launch("register", exec.queue.handle,
        static_cast<unsigned>(planes * pass.runs * pass.tiles), kLineThreads, 0,
        lines_kernel<radius>, pass, taps);
  };
  along(level.size[1], width, level.size[2], work, scratch, nullptr);
  along(level.size[2], std::int64_t{width} * level.size[1], 1, scratch, g,
      &level.state->records[at.record].largest_f64);
}

}  // namespace

void launch_smoothing(const Level<double>& level, Iteration at, const std::vector<double>& taps,
    double* g, double* work, double* scratch, const Execution& exec) {
  const bool is_known = static_cast<int>(taps.size()) <= kKnownRadius + 1;
  (is_known ? smooth<kKnownRadius> : smooth<kMostRadiusOfF64>)(level, at, taps, g, work, scratch,
      exec);
}

}  // namespace similis::registration_internal::cuda
