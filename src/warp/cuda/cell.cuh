// SPDX-License-Identifier: Apache-2.0
// Value and slopes of one voxel, from a cell that lies inside, without tests, or from any taps; and
// the sums that gradients to A and S are made of.
#pragma once

#include "src/warp/cuda/pass.h"

namespace similis::warp_internal {

// Returns whether memory holds the arithmetic's own type.
template <class T> __device__ bool is_own_type(DType dtype) {
  return dtype == (sizeof(T) == 8 ? DType::f64 : DType::f32);
}

// Does interpolate() for a cell that lies inside, in memory of type T.
template <class T, bool with_slopes>
__device__ __forceinline__ Sampled<T> interpolate_cell(
    const GpuPass& p, const Cell<T>& cell, const T* first) {
  const std::int64_t sx = p.image.strides[4], sy = p.image.strides[3], sz = p.image.strides[2];
  const T fx = cell.fraction[0], fy = cell.fraction[1], fz = cell.fraction[2];
  T v[8] = {};
  const int planes = p.rank == 3 ? 2 : 1;
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    if (k >= planes) break;
    const T* face = first + (k ? sz : 0);
    v[4 * k] = face[0], v[4 * k + 1] = face[sx];
    v[4 * k + 2] = face[sy], v[4 * k + 3] = face[sy + sx];
  }
  const auto mix = [](T f, T a, T b) { return fma(f, b - a, a); };
  T line[4], by_x[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    line[k] = mix(fx, v[2 * k], v[2 * k + 1]);
    by_x[k] = v[2 * k + 1] - v[2 * k];
  }
  const T near = mix(fy, line[0], line[1]), far = mix(fy, line[2], line[3]);
  Sampled<T> result{};
  if (planes == 1) {
    result.value = near;
    if (with_slopes) {
      result.slope[0] = mix(fy, by_x[0], by_x[1]);
      result.slope[1] = line[1] - line[0];
    }
    return result;
  }
  result.value = mix(fz, near, far);
  if (with_slopes) {
    result.slope[0] = mix(fz, mix(fy, by_x[0], by_x[1]), mix(fy, by_x[2], by_x[3]));
    result.slope[1] = mix(fz, line[1] - line[0], line[3] - line[2]);
    result.slope[2] = far - near;
  }
  return result;
}

template <class T, int count>
__device__ Sampled<T> interpolate_taps(
    const GpuPass& p, const Taps<T, count> (&axis)[3], std::int64_t plane) {
  return interpolate(axis, p.rank == 2 ? 1 : count,
      [&](int x, int y, int z) { return load_as<T>(p.image, plane + p.image.at(z, y, x)); });
}

/// Sums over a thread's voxels: see MatrixSums.
struct ThreadSums {
  double position[3][4] = {}, field[3][3] = {};
};

/// Adds the gradient to an index to the gradients to the field and the matrices.
template <class T, bool with_sums>
__device__ __forceinline__ void add_gradient(const GpuPass& p, const Transform& t,
    const T (&by_index)[3], const Column& column, int z, std::int64_t field_at,
    const FieldVector& loaded, double (&by_field)[3], ThreadSums* sums) {
  for (int a = 0; a < 3; ++a) {
    if (a >= p.rank) continue;
    const auto g = static_cast<double>(by_index[a]);
    if (!p.has_full_s) {
      by_field[a] = fma(g, t.s[a][a], by_field[a]);
    } else {
      for (int j = 0; j < 3; ++j) {
        if (j < p.rank) by_field[j] = fma(g, t.s[a][j], by_field[j]);
      }
    }
    if constexpr (with_sums) {
      double* position = sums->position[a];
      position[0] = fma(g, p.axes[0].first + column.x, position[0]);
      position[1] = fma(g, p.axes[1].first + column.y, position[1]);
      position[2] = fma(g, p.axes[2].first + z, position[2]);
      position[3] += g;
      if (!p.has_full_s || g == 0) continue;
      for (int j = 0; j < 3; ++j) {
        if (j < p.rank) {
          sums->field[a][j] = fma(g, field_component(p, field_at, loaded, j), sums->field[a][j]);
        }
      }
    }
  }
}

/// Adds the block's sums in a fixed order to those of this image and block.
__device__ inline void add_sums(const GpuPass& p, const ThreadSums& mine, std::int64_t image) {
  double* out = p.sums + image * p.blocks + blockIdx.x % p.blocks;
#pragma unroll
  for (int k = 0; k < kSums; ++k) {
    const double value = k < kPositionSums
                             ? mine.position[k / 4][k % 4]
                             : mine.field[(k - kPositionSums) / 3][(k - kPositionSums) % 3];
    const double sum = gpu::block_sum<kThreads>(value);
    if (threadIdx.x == 0) out[k * p.sum_rows] += sum;
    __syncthreads();
  }
}

__device__ __forceinline__ void store_field_gradient(
    const GpuPass& p, const Column& column, std::int64_t n, int z, const double (&by_field)[3]) {
  const gpu::View& out = p.field_gradient;
  const std::int64_t at = field_offset(out, n, z, column.y, column.x);
  for (int j = 0; j < 3; ++j) {
    if (j >= p.rank) continue;
    const std::int64_t offset = at + j * out.strides[4];
    if (out.dtype == DType::f64) {
      store_as(out, offset, by_field[j]);
    } else {
      store_as(out, offset, static_cast<float>(by_field[j]));
    }
  }
}

// Returns the scale that leaves `headroom` bits above the largest magnitude.
__device__ inline double fixed_scale(const FixedPoint& fixed) {
  const double largest = bits_as<double>(*fixed.largest);
  return largest > 0 ? ldexp(1.0, 61 - fixed.headroom - ilogb(largest)) : 1;
}
constexpr double kLowUnits = 0x1p32;

}  // namespace similis::warp_internal
