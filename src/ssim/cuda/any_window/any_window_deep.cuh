// SPDX-License-Identifier: Apache-2.0
// The kernels of volumes for any window: the averages of slices are averaged along z, and their
// derivatives summed along it. A thread takes four neighbours of one column along z.
#pragma once

#include "src/ssim/cuda/any_window/any_window_terms.cuh"

namespace similis::ssim_internal::any_window {

constexpr int kDeepOutputs = 4;
constexpr int kAverages = 5;  // of s, d, s², d² and the weight

// The place of a thread: its plane, counted from the first in memory, its first slice, and its
// column of slices' arrays.
struct DeepPlace {
  unsigned plane, group, block;
  std::int64_t element;
  int row, column;

  template <class T> __device__ DeepPlace(const Work<T>& w, int slices) {
    const auto blocks = static_cast<unsigned>((w.slice_array() + kThreads - 1) / kThreads);
    const auto groups = static_cast<unsigned>((slices + kDeepOutputs - 1) / kDeepOutputs);
    const unsigned rest = blockIdx.x / blocks;
    block = blockIdx.x - rest * blocks;
    plane = rest / groups;
    group = rest - plane * groups;
    element = std::int64_t{block} * kThreads + threadIdx.x;
    row = static_cast<int>(element / w.pitch);
    column = static_cast<int>(element - std::int64_t{row} * w.pitch);
    exists = row < w.map_extent[kDown] && column < w.map_extent[kAcross];
  }
  bool exists;
  __device__ int first() const { return static_cast<int>(group) * kDeepOutputs; }
};

// Averages of one column of slices; those outside are the averages of zeros, or nothing.
template <class T> struct AveragesColumn {
  static constexpr int kFetched = kDeepOutputs;
  const Work<T>& w;
  const T* const from;
  const int first, limit, fields;
  const T shift;
  T values[kAverages][kFetched];

  __device__ AveragesColumn(
      const Work<T>& work, const DeepPlace& place, int first_slice, int slices, T shift_of_s)
      : w(work),
        from(work.averages + place.element),
        first(first_slice),
        limit(slices),
        fields(work.valid_mask.data != nullptr ? 5 : 4),
        shift(shift_of_s) {
    skipped = std::int64_t{place.plane} * work.extent[kDeep];
  }
  std::int64_t skipped;  // slices of other planes

  __device__ __forceinline__ void fetch(int group, int u) {
    const T outside = w.padding == Padding::same ? 1 : 0;
#pragma unroll
    for (int j = 0; j < kFetched; ++j) {
      const int at = group + u + j;
      const int slice = at < limit ? seen_pixel(first + at, w.extent[kDeep], w.padding) : -1;
      const T* const here = from + (skipped + slice) * fields * w.slice_array();
      const bool exists = slice >= 0;
      values[0][j] = exists ? here[0] : -shift * outside;
      values[1][j] = exists ? here[w.slice_array()] : T(0);
      values[2][j] = exists ? here[2 * w.slice_array()] : shift * shift * outside;
      values[3][j] = exists ? here[3 * w.slice_array()] : T(0);
      values[4][j] = !exists ? outside : fields == 5 ? here[4 * w.slice_array()] : T(1);
    }
  }
  __device__ __forceinline__ void take(int j, T (&input)[kAverages]) const {
#pragma unroll
    for (int f = 0; f < kAverages; ++f) input[f] = values[f][j];
  }
};

template <class T> __global__ void __launch_bounds__(kThreads, 2) any_deep_kernel(const Work<T> w) {
  const DeepPlace place(w, w.map_extent[kDeep]);
  Slice<T> slice(w, w.first_plane + place.plane, 0, 0);
  slice.find_shift_of_plane(w);
  double sum = 0;
  if (place.exists) {
    const int row = place.row + w.first_centre[kDown],
              column = place.column + w.first_centre[kAcross], count = 2 * w.radius[kDeep] + 1;
    AveragesColumn<T> source(w, place, place.first() + w.first_centre[kDeep] - w.radius[kDeep],
        count - 1 + kDeepOutputs, 2 * slice.half_shift);
    T mean[kAverages][kDeepOutputs];
    average(w.taps[kDeep], count, source, mean);
    T inverse[1] = {1};
    const bool divides = w.valid_mask.data == nullptr && inverse_weights(w, row, column, inverse);
#pragma unroll
    for (int o = 0; o < kDeepOutputs; ++o) {
      slice.map_index = place.first() + o;
      if (slice.map_index >= w.map_extent[kDeep]) break;
      slice.index = slice.map_index + w.first_centre[kDeep];
      const T per_weight = (divides ? inverse[0] : T(1)) / mean[4][o];
      const WindowTerm<T> r = term_of(w, slice, mean[0][o] * per_weight, mean[1][o] * per_weight,
          mean[2][o] * per_weight, mean[3][o] * per_weight);
      T value[1] = {r.value}, derivative[kDerivatives][1];
#pragma unroll
      for (int f = 0; f < kDerivatives; ++f) derivative[f][0] = r.derivative[f] * per_weight;
      if (w.valid_mask.data != nullptr || w.mask.data != nullptr || !w.reduces) {
        weigh_run(w, slice, place.row, place.column, 1, value, derivative);
      }
      sum += static_cast<double>(value[0]);
      if (w.derivatives == nullptr) continue;
      T* const to = w.derivatives + place.element +
                    (std::int64_t{place.plane} * w.map_extent[kDeep] + slice.map_index) *
                        kDerivatives * w.slice_array();
#pragma unroll
      for (int f = 0; f < kDerivatives; ++f) to[f * w.slice_array()] = derivative[f][0];
    }
  }
  if (w.partials == nullptr) return;
  const double total = gpu::block_sum<kThreads>(sum);
  if (threadIdx.x == 0) {
    const unsigned of_plane = gridDim.x / static_cast<unsigned>(w.planes);
    w.partials[w.first_plane * of_plane + blockIdx.x] = total;
  }
}

// Derivatives of one column of the map's slices, 0 outside.
template <class T> struct DeepDerivatives {
  static constexpr int kFetched = kDeepOutputs;
  const Work<T>& w;
  const T* const from;  // of the plane's first slice
  const int first, limit;
  T values[kDerivatives][kFetched];

  __device__ DeepDerivatives(
      const Work<T>& work, const DeepPlace& place, int first_slice, int slices)
      : w(work),
        from(
            work.derivatives + place.element +
            std::int64_t{place.plane} * work.map_extent[kDeep] * kDerivatives * work.slice_array()),
        first(first_slice),
        limit(slices) {}

  __device__ __forceinline__ void fetch(int group, int u) {
#pragma unroll
    for (int j = 0; j < kFetched; ++j) {
      const int at = group + u + j, slice = first + at;
      const bool exists = at < limit && slice >= 0 && slice < w.map_extent[kDeep];
      const T* const here = from + std::int64_t{slice} * kDerivatives * w.slice_array();
#pragma unroll
      for (int f = 0; f < kDerivatives; ++f) {
        values[f][j] = exists ? here[f * w.slice_array()] : T(0);
      }
    }
  }
  __device__ __forceinline__ void take(int j, T (&input)[kDerivatives]) const {
#pragma unroll
    for (int f = 0; f < kDerivatives; ++f) input[f] = values[f][j];
  }
};

// `to` is [slice of the images][3][slice's array].
template <class T>
__global__ void __launch_bounds__(kThreads, 2) any_deep_gradient_kernel(const Work<T> w, T* to) {
  __shared__ RimTable<T> table;
  if (w.folds()) {
    fill_rim(w, kDeep, table);
    __syncthreads();
  }
  const DeepPlace place(w, w.extent[kDeep]);
  if (!place.exists) return;
  const int first = place.first();
  DeepDerivatives<T> source(w, place, first - w.radius[kDeep] - w.first_centre[kDeep],
      2 * w.radius[kDeep] + kDeepOutputs);
  T sums[kDerivatives][kDeepOutputs];
  sum_derivatives(w, kDeep, first, table, source, sums);
#pragma unroll
  for (int o = 0; o < kDeepOutputs; ++o) {
    if (first + o >= w.extent[kDeep]) break;
    T* const here =
        to + place.element +
        (std::int64_t{place.plane} * w.extent[kDeep] + first + o) * kDerivatives * w.slice_array();
#pragma unroll
    for (int f = 0; f < kDerivatives; ++f) here[f * w.slice_array()] = sums[f][o];
  }
}

}  // namespace similis::ssim_internal::any_window
