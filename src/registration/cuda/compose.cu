// SPDX-License-Identifier: Apache-2.0
// u' = G_elastic (d + u(x + d)) in one pass, d = step·g / |largest vector of g|:
//
//   u ─> ring of 4 planes with a rim                            shared
//   g, 8 vectors of u ─> d + u(x + d), with a rim of a voxel    shared, two planes
//   9 of these ─> G along x and y ─> 3 planes ─> along z ─> u'  registers
//
// No vector of d is longer than a voxel, so a cell begins at its own voxel or at the one before.
// Per voxel: u and g 12 B each, 1.7 and 1.3 times with their rims; 62 shared words; u' 12 B.
#include <cmath>

#include "src/gpu/cuda/vendor.h"
#include "src/registration/cuda/fused.h"
#include "src/registration/cuda/tiles.cuh"

namespace similis::registration_internal::cuda {
namespace {

constexpr int kRing = 4;  // planes of u: those beside a cell's own, and one that comes
constexpr int kRim = 2;   // voxels of u beside a tile
constexpr int kFieldPitch = 3 * (kColumns + 2 * kRim), kFieldRows = kRows + 2 * kRim,
              kFieldPlane = kFieldPitch * kFieldRows;
constexpr int kLoads = (kFieldPlane + kTile - 1) / kTile;
constexpr int kPitch = 3 * (kColumns + 2), kSums = (kColumns + 2) * (kRows + 2);
constexpr int kSumsOfThread = (kSums + kTile - 1) / kTile;

struct Composition {
  const float *g, *u;
  float* to;
  double step;
  Elastic elastic;
};

// Planes of the ring about a voxel.
struct RingPlanes {
  const float *before, *here, *behind;
};

constexpr float kMost = 0x1.fffffep-1f;  // of a step: a voxel's end is the next one's begin

// A voxel of the grid whose sum a thread forms.
struct SumPlace {
  int number;               // its first number in a plane of memory
  int own;                  // likewise in the ring
  float least[2], most[2];  // of d along x and y, within the grid

  __device__ SumPlace(const Level& p, int x0, int y0, int sum) {
    const int row = sum / (kColumns + 2),
              at[2] = {min(max(x0 - 1 + sum - row * (kColumns + 2), 0), p.size[0] - 1),
                  min(max(y0 - 1 + row, 0), p.size[1] - 1)};
    number = 3 * (at[1] * p.size[0] + at[0]);
    own = (at[1] - y0 + kRim) * kFieldPitch + 3 * (at[0] - x0 + kRim);
#pragma unroll
    for (int a = 0; a < 2; ++a) {
      least[a] = at[a] > 0 ? -1.0f : 0.0f;
      most[a] = at[a] + 1 < p.size[a] ? kMost : 0.0f;
    }
  }

  // Sets sum to d + u(x + d), d = factor·g. Limits along z are those of the plane.
  __device__ __forceinline__ void compose(const float (&g)[3], float factor, float least_z,
      float most_z, const RingPlanes& ring, float* sum) const {
    const float lower[3] = {least[0], least[1], least_z}, upper[3] = {most[0], most[1], most_z};
    bool is_before[3];
    float d[3], fraction[3];
#pragma unroll
    for (int a = 0; a < 3; ++a) {
      d[a] = factor * g[a];
      const float moved = fminf(fmaxf(d[a], lower[a]), upper[a]);
      is_before[a] = moved < 0;
      fraction[a] = is_before[a] ? moved + 1 : moved;
    }
    const int cell = own - (is_before[0] ? 3 : 0) - (is_before[1] ? kFieldPitch : 0);
    const float* const low = (is_before[2] ? ring.before : ring.here) + cell;
    const float* const high = (is_before[2] ? ring.here : ring.behind) + cell;
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
};

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
  const std::int64_t plane_numbers = 3 * plane_voxels;
  const int last_plane = p.size[2] - 1;
  // Numbers of a plane of u that this thread brings; voxels outside are those at the border.
  int offsets[kLoads];
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    const int number = t + i * kTile, row = number / kFieldPitch, e = number - row * kFieldPitch,
              column = e / 3;
    const int from_x = min(max(x0 - kRim + column, 0), p.size[0] - 1),
              from_y = min(max(y0 - kRim + row, 0), p.size[1] - 1);
    offsets[i] = (from_y * p.size[0] + from_x) * 3 + e - 3 * column;
  }
  const int first = max(z0 - 1, 0), last = min(z1, last_plane);
  // Pointers move from plane to plane: places that are formed anew cost more than all arithmetic.
  const float *coming = by.u + max(first - 1, 0) * plane_numbers,
              *coming_g = by.g + first * plane_numbers;
  int coming_z = first - 1;
  float next_u[kLoads];
  const auto fetch = [&] {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const bool exists = (i + 1) * kTile <= kFieldPlane || t + i * kTile < kFieldPlane;
      next_u[i] = exists ? coming[offsets[i]] : 0;
    }
    if (coming_z >= 0 && coming_z < last_plane) coming += plane_numbers;
    ++coming_z;
  };
  const auto store = [&](float* plane) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if ((i + 1) * kTile <= kFieldPlane || t + i * kTile < kFieldPlane) {
        plane[t + i * kTile] = next_u[i];
      }
    }
  };
  static_assert(kSumsOfThread == 2);
  const SumPlace places[kSumsOfThread] = {{p, x0, y0, t}, {p, x0, y0, t + kTile}};
  const bool has_second = t + kTile < kSums;
  float next_g[kSumsOfThread][3];
  const auto fetch_g = [&] {
#pragma unroll
    for (int i = 0; i < kSumsOfThread; ++i) {
      if (i > 0 && !has_second) break;
#pragma unroll
      for (int c = 0; c < 3; ++c) next_g[i][c] = coming_g[places[i].number + c];
    }
    coming_g += plane_numbers;
  };
  float *before_plane = ring, *here_plane = ring + kFieldPlane,
        *behind_plane = ring + 2 * kFieldPlane, *free_plane = ring + 3 * kFieldPlane;
  fetch();
  store(before_plane);
  fetch();
  store(here_plane);
  fetch();
  store(behind_plane);
  fetch();
  fetch_g();
  __syncthreads();
  const float centre = by.elastic.centre, beside = by.elastic.beside;
  float before[3] = {}, here[3] = {};
  float* to = by.to + z0 * plane_numbers + 3 * (std::int64_t{y} * p.size[0] + x);
  // One step more where the plane behind the last is that itself.
  for (int z = first; z <= z1; ++z) {
    float next[3];
    if (z <= last) {
      store(free_plane);  // the plane behind those that this step reads
      fetch();
      float* const plane = sums[z & 1];
      const RingPlanes about{before_plane, here_plane, behind_plane};
      const float least_z = z > 0 ? -1.0f : 0.0f, most_z = z < last_plane ? kMost : 0.0f;
#pragma unroll
      for (int i = 0; i < kSumsOfThread; ++i) {
        if (i > 0 && !has_second) break;
        places[i].compose(next_g[i], factor, least_z, most_z, about, plane + 3 * (t + i * kTile));
      }
      if (z < last) fetch_g();
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
#pragma unroll
      for (int c = 0; c < 3; ++c) to[c] = fmaf(centre, here[c], beside * (before[c] + next[c]));
      to += plane_numbers;
    }
#pragma unroll
    for (int c = 0; c < 3; ++c) {
      before[c] = here[c];
      here[c] = next[c];
    }
    float* const read = before_plane;
    before_plane = here_plane;
    here_plane = behind_plane;
    behind_plane = free_plane;
    free_plane = read;
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
