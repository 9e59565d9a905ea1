// SPDX-License-Identifier: Apache-2.0
// The kernel that sums the derivatives of all windows that see a pixel of a slice.
#pragma once

#include "src/ssim/cuda/any_window/any_window_terms.cuh"

namespace similis::ssim_internal::any_window {

// A column of derivatives, 0 outside the map. Rows are fetched in their order.
template <class T> struct DerivativeColumn {
  static constexpr int kFetched = Tiling<T>::kOutputs;
  const Work<T>& w;
  const int first, limit;
  const bool has_column, is_inside;
  const T* next[kDerivatives];  // of the next row
  T values[kDerivatives][kFetched];

  __device__ DerivativeColumn(
      const Work<T>& work, unsigned slice, int column, int first_row, int rows)
      : w(work),
        first(first_row),
        limit(rows),
        has_column(column >= 0 && column < work.map_extent[kAcross]),
        is_inside(has_column && first_row >= 0 && first_row + rows <= work.map_extent[kDown]) {
    const T* const from = work.derivatives + slice * kDerivatives * work.slice_array() + column +
                          std::int64_t{first_row} * work.pitch;
#pragma unroll
    for (int f = 0; f < kDerivatives; ++f) next[f] = from + f * work.slice_array();
  }

  __device__ __forceinline__ void fetch(int group, int u) {
#pragma unroll
    for (int j = 0; j < kFetched; ++j) {
      const int row = first + group + u + j;
      const bool exists = group + u + j < limit &&
                          (is_inside || (has_column && row >= 0 && row < w.map_extent[kDown]));
#pragma unroll
      for (int f = 0; f < kDerivatives; ++f) {
        values[f][j] = exists ? *next[f] : T(0);
        next[f] += w.pitch;
      }
    }
  }
  __device__ __forceinline__ void take(int j, T (&input)[kDerivatives]) const {
#pragma unroll
    for (int f = 0; f < kDerivatives; ++f) input[f] = values[f][j];
  }
};

// Adds the gradient of |x - y| to a run of pixels, and multiplies what windows take of each pixel
// by its weight.
template <class T, int count>
__device__ __forceinline__ void finish_gradient(const Work<T>& w, const Slice<T>& slice, int row,
    int column, int existing, T slope, T l1_slope, const T (&x)[count], const T (&y)[count],
    T (&gradient)[count]) {
  const RunWeights<T, count> weights(w, slice, row, column, existing);
  T valid[count], upstream[count];
#pragma unroll
  for (int o = 0; o < count; ++o) valid[o] = upstream[o] = 1;
  if (w.valid_mask.data != nullptr) {
    load_run(
        w.valid_mask, slice.of(w.valid_mask) + w.valid_mask.at(0, row, column), existing, valid);
  }
  if (w.l1_weight != 0 && w.upstream.data != nullptr) {  // padding is not valid: the map's size
    load_run(w.upstream, slice.of(w.upstream) + w.upstream.at(0, row, column), existing, upstream);
  }
#pragma unroll
  for (int o = 0; o < count; ++o) {
    const T v = checked_weight(valid[o]);
    gradient[o] = v == 0 ? T(0) : v * gradient[o];
    if (w.l1_weight != 0 && v != 0) {
      const T d = w.sign * slice.difference(w, x[o], y[o]);
      const T sign = d > 0 ? T(1) : d < 0 ? T(-1) : T(0);
      gradient[o] = fma(l1_slope * upstream[o] * weights.weight[o], sign, gradient[o]);
    }
    if (slope != slope) gradient[o] = slope;  // a weight is not one
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads, 2) any_gradient_kernel(const Work<T> w) {
  using Layout = Tiling<T>;
  constexpr int kOutputs = Layout::kOutputs;
  SIMILIS_DYNAMIC_SHARED(unsigned char, shared, 16);
  T* const rows = reinterpret_cast<T*>(shared);  // [3][high][pitch]
  auto* const tables = reinterpret_cast<RimTable<T>*>(rows + kDerivatives * Layout::kArray);
  const int t = static_cast<int>(threadIdx.x);
  const Tile<T> tile(w);
  const Slice<T> slice = tile.found(w);
  const int high = 2 * w.radius[kDown] + 1, wide = 2 * w.radius[kAcross] + 1;
  if (w.folds()) {
    fill_rim(w, kDown, tables[0]);
    fill_rim(w, kAcross, tables[1]);
    __syncthreads();
  }
#pragma unroll 1
  for (int task = t; task < Layout::kTasks; task += kThreads) {
    const int column = task % kLoaded, group = task / kLoaded;
    const int row = tile.row + group * kOutputs;
    if (row >= w.extent[kDown] || column >= w.owned + wide - 1) continue;
    DerivativeColumn<T> source(w, tile.slice,
        tile.column + column - w.radius[kAcross] - w.first_centre[kAcross],
        row - w.radius[kDown] - w.first_centre[kDown], high - 1 + kOutputs);
    T sums[kDerivatives][kOutputs];
    sum_derivatives(w, kDown, row, tables[0], source, sums);
    store_column(rows, group, column, sums);
  }
  __syncthreads();
  const PlaneSlopes slopes = w.slope.of(slice.plane);
  const T slope = static_cast<T>(4 * slopes.term), l1_slope = static_cast<T>(slopes.l1);
#pragma unroll 1
  for (int task = t; task < Layout::kTasks; task += kThreads) {
    const int run = task % Layout::kRuns, row = tile.row + task / Layout::kRuns;
    const int column = tile.column + run * kOutputs;
    const int existing = min(kOutputs, w.extent[kAcross] - column);
    if (row >= w.extent[kDown] || run * kOutputs >= w.owned || existing <= 0) continue;
    SharedRow<T, kDerivatives> source(rows, task / Layout::kRuns, run);
    T sums[kDerivatives][kOutputs], x[kOutputs], y[kOutputs];
    load_run(w.x, slice.of(w.x) + w.x.at(0, row, column), existing, x);
    load_run(w.y, slice.of(w.y) + w.y.at(0, row, column), existing, y);
    sum_derivatives(w, kAcross, column, tables[1], source, sums);
    T gradient[kOutputs];
#pragma unroll
    for (int o = 0; o < kOutputs; ++o) {
      const T s = slice.sum(w, x[o], y[o]), d = w.sign * slice.difference(w, x[o], y[o]);
      gradient[o] = slope * fma(d, sums[2][o], fma(-s, sums[1][o], sums[0][o]));
    }
    if (w.l1_weight != 0 || w.valid_mask.data != nullptr) {
      finish_gradient(w, slice, row, column, existing, slope, l1_slope, x, y, gradient);
    }
    store_run(w.gradient, slice.of(w.gradient) + w.gradient.at(0, row, column), existing, gradient);
  }
}

}  // namespace similis::ssim_internal::any_window
