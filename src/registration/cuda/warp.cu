// SPDX-License-Identifier: Apache-2.0
// Warps the moving image by u, and looks at u's determinants, in one pass over u.
//
//   u, planes with a rim of one voxel ─> ring of three planes        shared
//   own column and neighbours ─> 8 determinants of each voxel        registers
//   A(x + u) ─> 8 corners of M ─> J, moments of F and J              gathers, partials
//
// Per voxel: u 12 B, F 4, corners of M by the caches, J 4 written; 15 shared words.
#include "src/registration/cuda/cell.cuh"
#include "src/registration/cuda/fused.h"
#include "src/registration/cuda/last_block.cuh"
#include "src/registration/cuda/tiles.cuh"

namespace similis::registration_internal::cuda {
namespace {

constexpr int kPitch = 3 * (kColumns + 2), kPlane = kPitch * (kRows + 2);
constexpr int kLoads = (kPlane + kTile - 1) / kTile;
constexpr int kSums = 8;             // of a block: moments, bad determinants, NaN
constexpr int kNumbers = kSums + 1;  // and the largest -determinant

// The least of the determinants of one-sided differences; NaN if one is.
template <class T> __device__ __forceinline__ T least_determinant(const T (&change)[2][3][3]) {
  T least = INFINITY, sum = 0;
#pragma unroll
  for (int corner = 0; corner < 4; ++corner) {
    const T* const y = change[corner & 1][1];
    const T* const z = change[corner >> 1][2];
    const T cross[3] = {fma(y[1], z[2], -(y[2] * z[1])), fma(y[2], z[0], -(y[0] * z[2])),
        fma(y[0], z[1], -(y[1] * z[0]))};
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      const T* const x = change[side][0];
      const T det = fma(x[0], cross[0], fma(x[1], cross[1], x[2] * cross[2]));
      least = fmin(least, det);
      sum += det;
    }
  }
  return isnan(sum) ? NAN : least;
}

// One thread, once all blocks are done.
template <class T>
__device__ void finish(const Level<T>& p, Iteration at, const double (&sums)[kNumbers]) {
  State& state = *p.state;
  const double n = sums[0];
  state.count = n;
  state.mean_f = n > 0 ? sums[1] / n : 0;
  state.mean_j = n > 0 ? sums[2] / n : 0;
  const double ff = sums[3] - n * state.mean_f * state.mean_f,
               jj = sums[4] - n * state.mean_j * state.mean_j,
               fj = sums[5] - n * state.mean_f * state.mean_j;
  const bool has_spread = ff > 0 && jj > 0;
  const double norm = sqrt(ff * jj), factor = static_cast<double>(p.ncc_weight) * n;
  state.pearson = has_spread ? fj / norm : 0;
  state.by_f = has_spread ? factor / norm : 0;
  state.by_j = has_spread ? -factor * state.pearson / jj : 0;
  Record& record = state.records[at.record];
  record.bad = static_cast<unsigned long long>(sums[6]);
  record.least = sums[7] > 0 ? NAN : -sums[8];
  if (record.bad > 0) state.limit = at.number;
}

template <class T>
__global__ __launch_bounds__(kTile, sizeof(T) == sizeof(float) ? 3 : 2) void warp_kernel(
    const SIMILIS_GRID_CONSTANT Level<T> p, const SIMILIS_GRID_CONSTANT Tiles tiles,
    const Iteration at, const T* u) {
  if (!at.runs(p.state)) return;
  __shared__ T planes[3][kPlane];
  const int t = static_cast<int>(threadIdx.x);
  const Place place(p, tiles);
  const int x = place.x, y = place.y;
  const int own = (t / kColumns + 1) * kPitch + 3 * (t % kColumns + 1);
  const std::int64_t plane_voxels = std::int64_t{p.size[0]} * p.size[1];
  // Numbers of a plane of u that this thread brings; voxels outside are those at the border.
  unsigned offsets[kLoads];
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    const int number = t + i * kTile, row = number / kPitch, e = number - row * kPitch,
              column = e / 3;
    const int from_x = min(max(place.x0 - 1 + column, 0), p.size[0] - 1),
              from_y = min(max(place.y0 - 1 + row, 0), p.size[1] - 1);
    offsets[i] = static_cast<unsigned>((from_y * p.size[0] + from_x) * 3 + e - 3 * column);
  }
  // Pointers move from plane to plane: places that are formed anew cost more than all arithmetic.
  const std::int64_t plane_numbers = 3 * plane_voxels;
  const T* coming = u + max(place.z0 - 1, 0) * plane_numbers;  // the plane to fetch
  int coming_z = place.z0 - 1;
  T next[kLoads];
  const auto fetch = [&] {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const bool exists = (i + 1) * kTile <= kPlane || t + i * kTile < kPlane;
      next[i] = exists ? coming[offsets[i]] : 0;
    }
    if (coming_z >= 0 && coming_z + 1 < p.size[2]) coming += plane_numbers;
    ++coming_z;
  };
  const auto store = [&](T* plane) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if ((i + 1) * kTile <= kPlane || t + i * kTile < kPlane) plane[t + i * kTile] = next[i];
    }
  };
  T moments[6] = {}, most = -INFINITY;
  int bad = 0, nans = 0;
  fetch();
  store(planes[2]);
  fetch();
  store(planes[0]);
  fetch();
  __syncthreads();
  T before[3];
#pragma unroll
  for (int c = 0; c < 3; ++c) before[c] = planes[2][own + c];
  __syncthreads();
  T *plane_here = planes[0], *plane_behind = planes[1];
  auto voxel = static_cast<unsigned>(place.z0 * plane_voxels + std::int64_t{y} * p.size[0] + x);
  for (int z = place.z0; z < place.z1; ++z) {
    store(plane_behind);
    fetch();
    __syncthreads();
    const T *const here = plane_here + own, *const behind = plane_behind + own;
    if (place.is_mine) {
      const T moved[3] = {
          static_cast<T>(x) + here[0], static_cast<T>(y) + here[1], static_cast<T>(z) + here[2]};
      // Determinants are found while these loads are under way.
      const Cell<T> cell(p, moved);
      T corner[8];
      cell.load(p, p.moving, corner);
      const T f = p.fixed[voxel];
      T change[2][3][3];  // forwards and backwards, along an axis, of a component
      const int places[3] = {x, y, z};
      bool is_inner = true;
#pragma unroll
      for (int a = 0; a < 3; ++a) {
        constexpr int kSteps[2] = {3, kPitch};
        is_inner = is_inner && places[a] > 0 && places[a] + 1 < p.size[a];
#pragma unroll
        for (int c = 0; c < 3; ++c) {
          const T after = a == 2 ? behind[c] : here[c + kSteps[a & 1]],
                  previous = a == 2 ? before[c] : here[c - kSteps[a & 1]];
          change[0][a][c] = after - here[c];
          change[1][a][c] = here[c] - previous;
          if (a == c) {
            change[0][a][c] += 1;
            change[1][a][c] += 1;
          }
        }
      }
      if (!is_inner) {
#pragma unroll
        for (int a = 0; a < 3; ++a) {
          const bool has_next = places[a] + 1 < p.size[a], has_previous = places[a] > 0;
#pragma unroll
          for (int c = 0; c < 3; ++c) {
            if (!has_next) change[0][a][c] = has_previous ? change[1][a][c] : a == c ? T(1) : T(0);
            if (!has_previous) change[1][a][c] = change[0][a][c];
          }
        }
      }
      const T least = least_determinant(change);
      if (!(least >= p.min_jacobian)) {
        ++bad;
        Record& record = p.state->records[at.record];
#pragma unroll
        for (int a = 0; a < 3; ++a) {
          atomicMax(record.before + a, p.size[a] - places[a]);
          atomicMax(record.behind + a, places[a] + 1);
        }
      }
      nans += isnan(least) ? 1 : 0;
      most = fmax(most, -least);
      T value = NAN;
      const bool counts = cell.is_inside && (p.fixed_mask == nullptr || p.fixed_mask[voxel] != 0) &&
                          (p.moving_mask == nullptr || cell.value(p, p.moving_mask) >= kInside<T>);
      if (counts) {
        value = cell.value(corner);
        moments[0] += 1;
        moments[1] += f;
        moments[2] += value;
        moments[3] = fma(f, f, moments[3]);
        moments[4] = fma(value, value, moments[4]);
        moments[5] = fma(f, value, moments[5]);
      }
      p.j[voxel] = value;
    }
#pragma unroll
    for (int c = 0; c < 3; ++c) before[c] = here[c];
    plane_here = plane_behind;
    plane_behind = plane_behind == planes[2] ? planes[0] : plane_behind + kPlane;
    voxel += static_cast<unsigned>(plane_voxels);
  }
  double sums[kSums];
#pragma unroll
  for (int k = 0; k < 6; ++k) sums[k] = static_cast<double>(moments[k]);
  sums[6] = bad;
  sums[7] = nans;
  double all[kNumbers];
  if (!is_last_block<kSums>(sums, static_cast<double>(most), p.partials, &p.state->tickets[0], all))
    return;
  if (t == 0) finish(p, at, all);
}

}  // namespace

template <class T> std::int64_t warp_numbers(const Level<T>& level) {
  return Tiles(level.size, kLeastDepth).count() * kNumbers;
}

template <class T>
void launch_warp(const Level<T>& level, Iteration at, const T* u, const Execution& exec) {
  const Tiles tiles = best_tiles(level.size, 2, level.device, warp_kernel<T>);
  gpu::launch("register", exec.queue.handle, static_cast<unsigned>(tiles.count()), kTile, 0,
      warp_kernel<T>, level, tiles, at, u);
}

template std::int64_t warp_numbers(const Level<float>&);
template std::int64_t warp_numbers(const Level<double>&);
template void launch_warp(const Level<float>&, Iteration, const float*, const Execution&);
template void launch_warp(const Level<double>&, Iteration, const double*, const Execution&);

}  // namespace similis::registration_internal::cuda
