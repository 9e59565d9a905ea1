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

#include "src/gpu/cuda/vendor.h"
#include "src/registration/cuda/fused.h"
#include "src/registration/cuda/tiles.cuh"

namespace similis::registration_internal::cuda {
namespace {

constexpr int kRing = 4;  // planes of u: those beside a cell's own, and one that comes
constexpr int kRim = 2;   // voxels of u beside a tile
constexpr int kPair = 2;  // voxels of a thread
constexpr int kWarp = gpu::kSubgroup;
constexpr int kTileColumns = kWarp - 2 * kRim, kTileRows = 16;
constexpr int kFieldPitch = 3 * kWarp, kFieldRows = kTileRows + 2 * kRim,
              kFieldPlane = kFieldPitch * kFieldRows;
constexpr int kSumColumns = kTileColumns + 2, kSumRows = kTileRows + 2;
constexpr int kPitch = 3 * kSumColumns, kSumPlane = kPitch * kSumRows;
constexpr int kSumsOfThread = 2, kWarps = kSumRows / kSumsOfThread, kThreads = kWarp * kWarps;
constexpr int kLoads = (kFieldPlane + kThreads - 1) / kThreads;
// Half a warp smooths a row, so that its vectors lie in different banks.
constexpr int kPairThreads = kWarp / kPair;
static_assert(kPair * kPairThreads >= kTileColumns && kPairThreads * kTileRows <= kThreads);
constexpr int kSharedBytes = sizeof(float) * (kRing * kFieldPlane + 2 * kSumPlane);
constexpr TileShape kTileShape{.columns = kTileColumns, .rows = kTileRows, .threads = kThreads};

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
  unsigned number;          // its first number in a plane of memory
  int own;                  // likewise in the ring
  float least[2], most[2];  // of d along x and y, within the grid

  __device__ SumPlace(const Level& p, int x0, int y0, int row, int column) {
    const int at[2] = {
        min(max(x0 - 1 + column, 0), p.size[0] - 1), min(max(y0 - 1 + row, 0), p.size[1] - 1)};
    number = static_cast<unsigned>(3 * (at[1] * p.size[0] + at[0]));
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

__global__ __launch_bounds__(kThreads, 3) void compose_kernel(const SIMILIS_GRID_CONSTANT Level p,
    const SIMILIS_GRID_CONSTANT Tiles tiles, const Iteration at,
    const SIMILIS_GRID_CONSTANT Composition by) {
  if (!at.runs(p.state)) return;
  SIMILIS_DYNAMIC_SHARED(float, ring, 16);
  float* const sums = ring + kRing * kFieldPlane;  // two planes
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
  const float *coming = by.u + max(first - 1, 0) * plane_numbers,
              *coming_g = by.g + first * plane_numbers;
  int coming_z = first - 1;
  float next_u[kLoads];
  const auto fetch = [&] {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const bool exists = (i + 1) * kThreads <= kFieldPlane || t + i * kThreads < kFieldPlane;
      next_u[i] = exists ? coming[offsets[i]] : 0;
    }
    if (coming_z >= 0 && coming_z < last_plane) coming += plane_numbers;
    ++coming_z;
  };
  const auto store = [&](float* plane) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if ((i + 1) * kThreads <= kFieldPlane || t + i * kThreads < kFieldPlane) {
        plane[t + i * kThreads] = next_u[i];
      }
    }
  };
  const int warp = t / kWarp, lane = t % kWarp;
  const SumPlace places[kSumsOfThread] = {
      {p, x0, y0, warp, lane}, {p, x0, y0, warp + kWarps, lane}};
  const int own_sum = warp * kPitch + 3 * lane;
  const bool has_sum = lane < kSumColumns;
  float next_g[kSumsOfThread][3];
  const auto fetch_g = [&] {
#pragma unroll
    for (int i = 0; i < kSumsOfThread; ++i) {
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
  constexpr int kNumbers = 3 * kPair;  // of a thread's vectors
  float before[kNumbers] = {}, here[kNumbers] = {};
  float* to = by.to + z0 * plane_numbers + 3 * (std::int64_t{y} * p.size[0] + x);
  const bool stores_twos = p.size[0] % 2 == 0;  // all vectors of a thread are aligned then
  // One step more where the plane behind the last is that itself.
  for (int z = first; z <= z1; ++z) {
    float next[kNumbers] = {};
    if (z <= last) {
      store(free_plane);  // the plane behind those that this step reads
      fetch();
      float* const plane = sums + (z & 1) * kSumPlane;
      const RingPlanes about{before_plane, here_plane, behind_plane};
      const float least_z = z > 0 ? -1.0f : 0.0f, most_z = z < last_plane ? kMost : 0.0f;
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
        const float* const own = plane + row * kPitch + 3 * column;
        float along_y[kNumbers + 6];
#pragma unroll
        for (int i = 0; i < kNumbers + 6; i += 2) {
          const auto two = [&](int dy) {
            return *reinterpret_cast<const float2*>(own + dy * kPitch + i);
          };
          const float2 low = two(0), middle = two(1), high = two(2);
          along_y[i] = fmaf(centre, middle.x, beside * (low.x + high.x));
          along_y[i + 1] = fmaf(centre, middle.y, beside * (low.y + high.y));
        }
#pragma unroll
        for (int c = 0; c < kNumbers; ++c) {
          next[c] = fmaf(centre, along_y[c + 3], beside * (along_y[c] + along_y[c + 6]));
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
      float result[kNumbers];
#pragma unroll
      for (int c = 0; c < kNumbers; ++c) {
        result[c] = fmaf(centre, here[c], beside * (before[c] + next[c]));
      }
      if (stores_twos) {
#pragma unroll
        for (int c = 0; c < kNumbers; c += 2) {
          *reinterpret_cast<float2*>(to + c) = make_float2(result[c], result[c + 1]);
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
  gpu::allow_shared_bytes(compose_kernel, kSharedBytes);
  const Tiles tiles = best_tiles(level, 3, level.device, compose_kernel, kTileShape, kSharedBytes);
  gpu::launch("register", exec.queue.handle, static_cast<unsigned>(tiles.count()), kThreads,
      kSharedBytes, compose_kernel, level, tiles, at, Composition{g, u, to, step, elastic});
}

}  // namespace similis::registration_internal::cuda
