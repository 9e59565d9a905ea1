// SPDX-License-Identifier: Apache-2.0
// u' = G_elastic (d + u(x + d)) in one pass, d = step·g / |largest vector of g|:
//
//   u ─> ring of 5 planes with a rim                            shared
//   g, 8 vectors of u ─> d + u(x + d), with a rim of a voxel    shared, two planes
//   9 of these ─> G along x and y ─> 3 planes ─> along z ─> u'  registers
//
// No vector of d is longer than a voxel, so a cell lies within a voxel of its own. Per voxel: u and
// g 12 B each, 1.6 and 1.3 times with their rims; 62 shared words; u' 12 B.
#include <cmath>

#include "src/gpu/cuda/vendor.h"
#include "src/registration/cuda/fused.h"
#include "src/registration/cuda/tiles.cuh"

namespace similis::registration_internal::cuda {
namespace {

constexpr int kRing = 5;  // planes of u: one before a cell's own, two behind, one that comes
constexpr int kBefore = 2, kBehind = 3;  // voxels of u beside a tile
constexpr int kFieldPitch = 3 * (kColumns + kBefore + kBehind),
              kFieldRows = kRows + kBefore + kBehind, kFieldPlane = kFieldPitch * kFieldRows;
constexpr int kLoads = (kFieldPlane + kTile - 1) / kTile;
constexpr int kPitch = 3 * (kColumns + 2), kSums = (kColumns + 2) * (kRows + 2);
constexpr int kSumsOfThread = (kSums + kTile - 1) / kTile;

struct Composition {
  const float *g, *u;
  float* to;
  double step;
  Elastic elastic;
};

// Sets sum to d + u(x + d) at a voxel of the grid, d = factor·g.
__device__ __forceinline__ void compose_voxel(const Level& p, const float (&g)[3], float factor,
    int x, int y, int z, int x0, int y0, const float* ring, float* sum) {
  const int place[3] = {x, y, z};
  int first[3];
  float d[3], fraction[3];
#pragma unroll
  for (int a = 0; a < 3; ++a) {
    d[a] = factor * g[a];
    // Within the grid, and within the ring by rounding.
    const float least = place[a] > 0 ? -1.0f : 0.0f, most = place[a] + 1 < p.size[a] ? 1.0f : 0.0f;
    const float moved = fminf(fmaxf(d[a], least), most);
    const float whole = floorf(moved);
    first[a] = static_cast<int>(whole);
    fraction[a] = moved - whole;
  }
  const int column = 3 * (x + first[0] - x0 + kBefore), row = y + first[1] - y0 + kBefore;
  const float* const low =
      ring + (z + first[2] + kRing) % kRing * kFieldPlane + row * kFieldPitch + column;
  const float* const high =
      ring + (z + first[2] + 1 + kRing) % kRing * kFieldPlane + row * kFieldPitch + column;
  const auto mix = [](float a, float b, float f) { return fmaf(f, b - a, a); };
#pragma unroll
  for (int c = 0; c < 3; ++c) {
    const auto plane = [&](const float* at) {
      return mix(mix(at[c], at[c + 3], fraction[0]),
          mix(at[c + kFieldPitch], at[c + kFieldPitch + 3], fraction[0]), fraction[1]);
    };
    sum[c] = d[c] + mix(plane(low), plane(high), fraction[2]);
  }
}

__global__ __launch_bounds__(kTile, 3) void compose_kernel(const SIMILIS_GRID_CONSTANT Level p,
    const SIMILIS_GRID_CONSTANT Tiles tiles, const Iteration at,
    const SIMILIS_GRID_CONSTANT Composition by) {
  if (!at.runs(p.state)) return;
  __shared__ float ring[kRing * kFieldPlane];
  __shared__ float sums[2][3 * kSums];
  Record& record = p.state->records[at.record];
  const double largest = sqrt(static_cast<double>(__uint_as_float(record.largest)));
  const int t = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x);
  if (!(largest > 0) || !isfinite(largest)) {
    // Blocks that start later stop at the limit or here.
    if (t == 0 && block == 0) {
      record.is_flat = 1;
      p.state->limit = at.number - 1;
    }
    return;
  }
  const auto factor = static_cast<float>(by.step / largest);
  const Place of(p, tiles);
  const int x0 = of.x0, y0 = of.y0, z0 = of.z0, z1 = of.z1, x = of.x, y = of.y;
  const std::int64_t plane_voxels = std::int64_t{p.size[0]} * p.size[1];
  // Numbers of a plane of u that this thread brings; voxels outside are those at the border.
  int offsets[kLoads];
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    const int number = t + i * kTile, row = number / kFieldPitch, e = number - row * kFieldPitch,
              column = e / 3;
    const int from_x = min(max(x0 - kBefore + column, 0), p.size[0] - 1),
              from_y = min(max(y0 - kBefore + row, 0), p.size[1] - 1);
    offsets[i] = (from_y * p.size[0] + from_x) * 3 + e - 3 * column;
  }
  float next_u[kLoads];
  const auto fetch = [&](int z) {
    const float* const plane = by.u + min(max(z, 0), p.size[2] - 1) * plane_voxels * 3;
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      next_u[i] = t + i * kTile < kFieldPlane ? plane[offsets[i]] : 0;
    }
  };
  const auto store = [&](int z) {
    float* const plane = ring + (z + kRing) % kRing * kFieldPlane;
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if (t + i * kTile < kFieldPlane) plane[t + i * kTile] = next_u[i];
    }
  };
  // The sums that this thread forms: their places, clamped to the grid, and g there.
  int sum_x[kSumsOfThread], sum_y[kSumsOfThread];
  float next_g[kSumsOfThread][3];
#pragma unroll
  for (int i = 0; i < kSumsOfThread; ++i) {
    const int number = t + i * kTile, row = number / (kColumns + 2);
    sum_x[i] = min(max(x0 - 1 + number - row * (kColumns + 2), 0), p.size[0] - 1);
    sum_y[i] = min(max(y0 - 1 + row, 0), p.size[1] - 1);
  }
  const auto fetch_g = [&](int z) {
    const float* const plane = by.g + min(z, p.size[2] - 1) * plane_voxels * 3;
#pragma unroll
    for (int i = 0; i < kSumsOfThread; ++i) {
      if (t + i * kTile >= kSums) break;
      const float* const own = plane + 3 * (sum_y[i] * p.size[0] + sum_x[i]);
#pragma unroll
      for (int c = 0; c < 3; ++c) next_g[i][c] = own[c];
    }
  };
  const int first = max(z0 - 1, 0), last = min(z1, p.size[2] - 1);
  for (int z = first - 1; z <= first + 2; ++z) {
    fetch(z);
    store(z);
  }
  fetch(first + 3);
  fetch_g(first);
  __syncthreads();
  const float centre = by.elastic.centre, beside = by.elastic.beside;
  float before[3] = {}, here[3] = {};
  // One step more where the plane behind the last is that itself.
  for (int z = first; z <= z1; ++z) {
    float next[3];
    if (z <= last) {
      store(z + 3);
      fetch(z + 4);
      float* const plane = sums[z & 1];
#pragma unroll
      for (int i = 0; i < kSumsOfThread; ++i) {
        if (t + i * kTile >= kSums) break;
        compose_voxel(
            p, next_g[i], factor, sum_x[i], sum_y[i], z, x0, y0, ring, plane + 3 * (t + i * kTile));
      }
      fetch_g(z + 1);
      __syncthreads();
      const float* const own = plane + (t / kColumns) * kPitch + 3 * (t % kColumns);
#pragma unroll
      for (int c = 0; c < 3; ++c) {
        const auto row = [&](int dy) {
          const float* const at_row = own + dy * kPitch + c;
          return fmaf(centre, at_row[3], beside * (at_row[0] + at_row[6]));
        };
        next[c] = fmaf(centre, row(1), beside * (row(0) + row(2)));
      }
    } else {
#pragma unroll
      for (int c = 0; c < 3; ++c) next[c] = here[c];
    }
    if (z == 0) {
#pragma unroll
      for (int c = 0; c < 3; ++c) here[c] = next[c];
    }
    const int out = z - 1;
    if (out >= z0 && of.is_mine) {
      float* const to = by.to + ((std::int64_t{out} * p.size[1] + y) * p.size[0] + x) * 3;
#pragma unroll
      for (int c = 0; c < 3; ++c) to[c] = fmaf(centre, here[c], beside * (before[c] + next[c]));
    }
#pragma unroll
    for (int c = 0; c < 3; ++c) {
      before[c] = here[c];
      here[c] = next[c];
    }
  }
}

}  // namespace

void launch_compose(const Level& level, Iteration at, double step, const Elastic& elastic,
    const float* g, const float* u, float* to, const Execution& exec) {
  const Tiles tiles = best_tiles(level, 3, level.device, compose_kernel);
  gpu::launch("register", exec.queue.handle, static_cast<unsigned>(tiles.count()), kTile, 0,
      compose_kernel, level, tiles, at, Composition{g, u, to, step, elastic});
}

}  // namespace similis::registration_internal::cuda
