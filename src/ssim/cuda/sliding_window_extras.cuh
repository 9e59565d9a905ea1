// SPDX-License-Identifier: Apache-2.0
// Parts of the sliding window kernel that few calls need: halved images, masks, maps and their
// upstream.
#pragma once

#include "src/ssim/cuda/sliding_window.h"
#include "src/ssim/cuda/sliding_window_window.cuh"

#if !defined(__HIPCC__)

namespace similis::ssim_internal::sliding_window {

// The pixels that a segment answers for, so that each pixel belongs to one segment: the first
// segment also has the pixels before its first owned one, the last also those behind.
struct Owned {
  int row0, row1, column0, column1;
};

template <class P>
__device__ __forceinline__ Owned owned_pixels(
    const SlidingWindow& m, int strip, int row0, int rows, int column0, int first_row) {
  constexpr int kRim = P::kGradient ? 10 : 6;
  return {row0 == 0 ? 0 : first_row + P::kHalo / 2,
      row0 + rows == m.rows ? m.height : first_row + P::kHalo / 2 + rows,
      strip == 0 ? 0 : column0 + kRim, strip == m.strips - 1 ? m.width : column0 + kRim + m.owned};
}

// Halves sums and differences on their way through V1: a thread's two columns make one column of
// the halved image, and two rows make one. Segments begin at even rows, so rows 2j and 2j + 1 come
// at places of a batch that the compiler knows.
struct Halver {
  float *sum, *difference;  // this thread's element of the next pair of rows
  std::int64_t row_stride;
  float shift;
  int before, count;  // pairs of rows before the first owned one; number of owned pairs
  float above_s, above_d;

  __device__ Halver(const SlidingWindow& m, std::int64_t plane, int column, const Owned& owned,
      int row, float shift_of_s)
      : row_stride(m.extras.halved_sum.strides[3]), shift(shift_of_s) {
    const std::int64_t offset = m.extras.halved_sum.plane(plane / m.channels, plane % m.channels) +
                                column / 2 + std::int64_t{row >> 1} * row_stride;
    sum = static_cast<float*>(m.extras.halved_sum.data) + offset;
    difference = static_cast<float*>(m.extras.halved_difference.data) + offset;
    before = (owned.row0 >> 1) - (row >> 1);
    const bool owns_column = column >= owned.column0 && column < owned.column1;
    count = owns_column ? (owned.row1 >> 1) - (owned.row0 >> 1) : 0;
  }

  // Takes row i of a batch; `s` is shifted.
  __device__ __forceinline__ void push(int i, const float (&s)[2], const float (&d)[2]) {
    const float pair_s = s[0] + s[1], pair_d = d[0] + d[1];
    if ((i & 1) == 0) {
      above_s = pair_s;
      above_d = pair_d;
      return;
    }
    if (static_cast<unsigned>(-before) < static_cast<unsigned>(count)) {
      *sum = fmaf(above_s + pair_s, 0.25f, shift);
      *difference = (above_d + pair_d) * 0.25f;
    }
    sum += row_stride;
    difference += row_stride;
    --before;
  }
};

// The offsets of the map elements of a plane and of their upstream and mask.
struct MapPlane {
  std::int64_t map, upstream, mask;  // offsets of the first elements

  __device__ MapPlane(const SlidingWindow& m, std::int64_t plane) {
    const std::int64_t image = plane / m.channels, channel = plane % m.channels;
    map = m.extras.map.plane(image, channel);
    upstream = m.extras.upstream.plane(image, channel);
    mask = m.extras.mask.plane(image, channel);
  }
};

// Loads 8 neighbours in a row as f32, and 1 for those that are not wanted. Elements that are not
// f32 come one by one through `staging`, 8 words of this thread: six dtypes unrolled would crowd
// the instruction cache.
__device__ __forceinline__ void load8(
    const gpu::View& view, std::int64_t offset, unsigned wanted, float* staging, float (&out)[8]) {
  const std::int64_t stride = view.strides[4];
  if (view.dtype == DType::f32) {
    const float* const from = static_cast<const float*>(view.data) + offset;
#pragma unroll
    for (int o = 0; o < 8; ++o) out[o] = (wanted >> o & 1) != 0 ? from[o * stride] : 1.f;
    return;
  }
#pragma unroll 1
  for (int o = 0; o < 8; ++o) {
    staging[o] = (wanted >> o & 1) != 0 ? view.load_f32(offset + o * stride) : 1.f;
  }
#pragma unroll
  for (int o = 0; o < 8; ++o) out[o] = staging[o];
}

// Stores 8 neighbours in a row, of any dtype and stride.
template <class T>
__device__ __forceinline__ void store8_apart_as(
    void* data, std::int64_t offset, std::int64_t stride, const float (&v)[8], int columns) {
  T* const to = static_cast<T*>(data) + offset;
#pragma unroll
  for (int o = 0; o < 8; ++o) {
    if (o < columns) store(v[o], to + o * stride);
  }
}
__device__ __forceinline__ void store8_apart(
    const gpu::View& view, std::int64_t offset, const float (&v)[8], int columns) {
  const std::int64_t stride = view.strides[4];
  switch (view.dtype) {
    case DType::f16: return store8_apart_as<F16>(view.data, offset, stride, v, columns);
    case DType::bf16: return store8_apart_as<BF16>(view.data, offset, stride, v, columns);
    default: return store8_apart_as<float>(view.data, offset, stride, v, columns);
  }
}

// Rows of f32 of unit stride that begin anywhere: a warp's part of them, 256 columns.
struct RowsOfWarp {
  float* first = nullptr;  // this lane's column of row 0; null for other rows
  unsigned wanted = 0;     // bit j is set if column lane + 32·j is stored

  __device__ RowsOfWarp(
      const gpu::View& view, std::int64_t first_of_rows, int columns0, int columns1) {
    const int lane = static_cast<int>(threadIdx.x) % gpu::kWarp;
    if (view.data == nullptr || view.dtype != DType::f32 || view.strides[4] != 1) return;
    first = static_cast<float*>(view.data) + first_of_rows + lane;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int column = lane + j * gpu::kWarp;
      if (column >= columns0 && column < columns1) wanted |= 1u << j;
    }
  }

  // Each thread brings 8 neighbours; neighbours in the warp store neighbours in memory, which fills
  // whole sectors.
  __device__ __forceinline__ void store(
      std::int64_t offset_of_row, const float (&values)[8], float* staging) const {
    const int lane = static_cast<int>(threadIdx.x) % gpu::kWarp;
    float* const of_warp = staging + (static_cast<int>(threadIdx.x) - lane) * 8;
    store4(of_warp + lane * 8, values);
    store4(of_warp + lane * 8 + 4, values + 4);
    __syncwarp();
    float* const to = first + offset_of_row;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      if ((wanted >> j & 1) != 0) to[j * gpu::kWarp] = of_warp[lane + j * gpu::kWarp];
    }
    __syncwarp();
  }
};

}  // namespace similis::ssim_internal::sliding_window

#endif
