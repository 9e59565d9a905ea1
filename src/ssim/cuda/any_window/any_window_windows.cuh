// SPDX-License-Identifier: Apache-2.0
// The kernel that averages the windows of slices: a 2-D image is one slice.
#pragma once

#include "src/gpu/cuda/vendor.h"
#include "src/ssim/cuda/any_window/any_window_terms.cuh"

namespace similis::ssim_internal::any_window {

// A column of x and y, and of the mask if pixels are masked, that a window sees. Rows are fetched
// in their order: inside the image pointers move on by a row, and nothing is multiplied.
template <class T, bool masked> struct PixelColumn {
  static constexpr int kFetched = Tiling<T>::kOutputs;
  const Work<T>& w;
  const Slice<T>& slice;
  const int first, limit;  // index of the first row; number of rows that are needed
  const bool has_column, is_inside;
  std::int64_t x, y, mask;  // offsets of the next row, or of row 0 if some are outside
  T vx[kFetched], vy[kFetched], vm[masked ? kFetched : 1];

  __device__ PixelColumn(
      const Work<T>& work, const Slice<T>& of, int column, int first_row, int rows)
      : w(work),
        slice(of),
        first(first_row),
        limit(rows),
        has_column(column >= 0),
        is_inside(has_column && first_row >= 0 && first_row + rows <= work.extent[kDown]),
        x(offset(work.x, column)),
        y(offset(work.y, column)),
        mask(masked ? offset(work.valid_mask, column) : 0) {}
  __device__ std::int64_t offset(const gpu::View& view, int column) const {
    return slice.of(view) + column * view.strides[4] + (is_inside ? first * view.strides[3] : 0);
  }

  __device__ __forceinline__ void fetch(int group, int u) {
    // Zeros with padding same; with others s and d are 0 there.
    const bool is_same = w.padding == Padding::same;
    const T beyond_x = is_same ? T(0) : w.of_sums ? 2 * slice.half_shift : slice.half_shift;
    const T beyond_y = is_same || w.of_sums ? T(0) : slice.half_shift;
    fetch_rows(w.x, group + u, x, beyond_x, vx);
    fetch_rows(w.y, group + u, y, beyond_y, vy);
    if constexpr (masked) {
      fetch_rows(w.valid_mask, group + u, mask, is_same ? T(1) : T(0), vm);
    }
  }

  __device__ __forceinline__ void fetch_rows(
      const gpu::View& view, int next, std::int64_t& at, T beyond, T (&values)[kFetched]) const {
    visit<T>(view.dtype, [&]<class E>(std::type_identity<E>) {
      const E* from = static_cast<const E*>(view.data) + at;
      if (is_inside) {
#pragma unroll
        for (int j = 0; j < kFetched; ++j) {
          if (next + j < limit) values[j] = element<T>(from);
          from += view.strides[3];
        }
        return;
      }
#pragma unroll
      for (int j = 0; j < kFetched; ++j) {
        const int row = seen_pixel(first + next + j, w.extent[kDown], w.padding);
        const bool exists = has_column && row >= 0 && next + j < limit;
        values[j] = exists ? element<T>(from + row * view.strides[3]) : beyond;
      }
    });
    if (is_inside) at += kFetched * view.strides[3];
  }

  __device__ __forceinline__ void take(int j, T (&input)[masked ? 5 : 4]) const {
    T s = slice.sum(w, vx[j], vy[j]), d = slice.difference(w, vx[j], vy[j]);
    if constexpr (masked) {
      const T m = checked_weight(vm[j]);
      s = m == 0 ? T(0) : s;  // the pixel may hold anything
      d = m == 0 ? T(0) : d;
      input[0] = m * s;
      input[1] = m * d;
      input[2] = input[0] * s;
      input[3] = input[1] * d;
      input[4] = m;
    } else {
      input[0] = s;
      input[1] = d;
      input[2] = s * s;
      input[3] = d * d;
    }
  }
};

template <class T>
__device__ __forceinline__ void store_chunks(T* to, const T (&values)[Tiling<T>::kOutputs]) {
  struct alignas(16) Chunk {
    T of[Tiling<T>::kChunk];
  };
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    Chunk chunk;
#pragma unroll
    for (int i = 0; i < Tiling<T>::kChunk; ++i) chunk.of[i] = values[j * Tiling<T>::kChunk + i];
    reinterpret_cast<Chunk*>(to)[j] = chunk;
  }
}

template <class T, bool masked>
__global__ void __launch_bounds__(kThreads, 2) any_windows_kernel(const Work<T> w) {
  using Layout = Tiling<T>;
  constexpr int kFields = masked ? 5 : 4, kOutputs = Layout::kOutputs;
  SIMILIS_DYNAMIC_SHARED(unsigned char, shared, 16);
  T* const rows = reinterpret_cast<T*>(shared);  // [fields][high][pitch]
  const int t = static_cast<int>(threadIdx.x);
  const Tile<T> tile(w);
  Slice<T> slice = tile.found(w);
  // A variance keeps its digits by a shift of the tile. Derivatives of windows of several tiles
  // meet in the gradient, so they leave with the shift of the plane, as averages of volumes do.
  const T plane_half_shift = slice.half_shift;
  if (w.averages == nullptr) {
    const int first[kAxes] = {min(tile.row + w.first_centre[kDown], w.extent[kDown] - 1),
        min(tile.column + w.first_centre[kAcross], w.extent[kAcross] - 1), 0};
    const int extent[kAxes] = {min(Layout::kHigh, w.extent[kDown] - first[kDown]),
        min(w.owned, w.extent[kAcross] - first[kAcross]), 1};
    slice.find_shift(w, first, extent);
  }
  const T from_plane = 2 * (slice.half_shift - plane_half_shift);
  const int high = 2 * w.radius[kDown] + 1, wide = 2 * w.radius[kAcross] + 1;
#pragma unroll 1
  for (int task = t; task < Layout::kTasks; task += kThreads) {
    const int column = task % kLoaded, group = task / kLoaded;
    const int row = tile.row + group * kOutputs;
    if (row >= w.map_extent[kDown] || column >= w.owned + wide - 1) continue;
    const int index = tile.column + w.first_centre[kAcross] - w.radius[kAcross] + column;
    PixelColumn<T, masked> source(w, slice, seen_pixel(index, w.extent[kAcross], w.padding),
        row + w.first_centre[kDown] - w.radius[kDown], high - 1 + kOutputs);
    T averages[kFields][kOutputs];
    average(w.taps[kDown], high, source, averages);
    store_column(rows, group, column, averages);
  }
  __syncthreads();
  double sum = 0;
#pragma unroll 1
  for (int task = t; task < Layout::kTasks; task += kThreads) {
    const int run = task % Layout::kRuns, row = tile.row + task / Layout::kRuns;
    const int column = tile.column + run * kOutputs;
    const int existing = min(kOutputs, w.map_extent[kAcross] - column);
    if (row >= w.map_extent[kDown] || run * kOutputs >= w.owned || existing <= 0) continue;
    SharedRow<T, kFields> source(rows, task / Layout::kRuns, run);
    T mean[kFields][kOutputs];
    average(w.taps[kAcross], wide, source, mean);
    if (w.averages != nullptr) {
      T* const to = w.averages + tile.slice * kFields * w.slice_array() +
                    std::int64_t{row} * w.pitch + column;
#pragma unroll
      for (int f = 0; f < kFields; ++f) store_chunks(to + f * w.slice_array(), mean[f]);
      continue;
    }
    T inverse[kOutputs];
    bool divides = masked;
    if constexpr (masked) {
#pragma unroll
      for (int o = 0; o < kOutputs; ++o) inverse[o] = 1 / mean[4][o];
    } else {
      divides = inverse_weights(
          w, row + w.first_centre[kDown], column + w.first_centre[kAcross], inverse);
    }
    T value[kOutputs], derivative[kDerivatives][kOutputs];
#pragma unroll
    for (int o = 0; o < kOutputs; ++o) {
      if (divides) {
#pragma unroll
        for (int f = 0; f < 4; ++f) mean[f][o] *= inverse[o];
      }
      const WindowTerm<T> r = term_of(w, slice, mean[0][o], mean[1][o], mean[2][o], mean[3][o]);
      value[o] = r.value;
#pragma unroll
      for (int f = 0; f < kDerivatives; ++f) {
        derivative[f][o] = divides ? r.derivative[f] * inverse[o] : r.derivative[f];
      }
      derivative[0][o] = fma(from_plane, derivative[1][o], derivative[0][o]);
    }
    if (masked || w.mask.data != nullptr || !w.reduces) {
      weigh_run(w, slice, row, column, existing, value, derivative);
    }
#pragma unroll
    for (int o = 0; o < kOutputs; ++o) {
      if (o < existing) sum += static_cast<double>(value[o]);
    }
    if (w.derivatives == nullptr) continue;
    T* const to = w.derivatives + tile.slice * kDerivatives * w.slice_array() +
                  std::int64_t{row} * w.pitch + column;
#pragma unroll
    for (int f = 0; f < kDerivatives; ++f) {
#pragma unroll
      for (int o = 0; o < kOutputs; ++o) {
        if (o >= existing) derivative[f][o] = 0;
      }
      store_chunks(to + f * w.slice_array(), derivative[f]);
    }
  }
  if (w.partials == nullptr || w.averages != nullptr) return;
  const double total = gpu::block_sum<kThreads>(sum);
  if (t == 0) {
    w.partials[(w.first_plane + tile.slice) * (w.across * w.down) + tile.in_slice] = total;
  }
}

}  // namespace similis::ssim_internal::any_window
