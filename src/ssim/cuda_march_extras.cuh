// SPDX-License-Identifier: Apache-2.0
// What few calls want of the march: halved images, masks, maps and their upstream.
#pragma once

#include "src/ssim/cuda_march.h"
#include "src/ssim/cuda_march_window.cuh"

#if !defined(__HIPCC__)

namespace similis::ssim_internal::march {

// Which of the image's pixels a segment answers for, so that each belongs to one: those below its
// first owned one too if it is the first, and so on.
struct Owned {
  int row0, row1, column0, column1;
};

template <class P>
__device__ __forceinline__ Owned owned_pixels(
    const March& m, int strip, int row0, int rows, int column0, int first_row) {
  constexpr int kRim = P::kGradient ? 10 : 6;
  return {row0 == 0 ? 0 : first_row + P::kHalo / 2,
      row0 + rows == m.rows ? m.height : first_row + P::kHalo / 2 + rows,
      strip == 0 ? 0 : column0 + kRim, strip == m.strips - 1 ? m.width : column0 + kRim + m.owned};
}

// Halves sums and differences on their way through V1: a thread's two columns make one of the
// halved image, and two rows one.
struct Halver {
  float *sum, *difference;  // this thread's element of row 0
  std::int64_t row_stride;
  bool owns_column;
  float above_s = 0, above_d = 0;

  __device__ Halver(const March& m, std::int64_t plane, int column, const Owned& owned)
      : row_stride(m.extras.halved_sum.strides[3]),
        owns_column(column >= owned.column0 && column < owned.column1) {
    const std::int64_t offset =
        m.extras.halved_sum.plane(plane / m.channels, plane % m.channels) + column / 2;
    sum = static_cast<float*>(m.extras.halved_sum.data) + offset;
    difference = static_cast<float*>(m.extras.halved_difference.data) + offset;
  }

  // `s` is shifted by `shift`.
  __device__ __forceinline__ void push(
      int row, const float (&s)[2], const float (&d)[2], float shift, const Owned& owned) {
    const float pair_s = s[0] + s[1], pair_d = d[0] + d[1];
    if ((row & 1) == 0) {
      above_s = pair_s;
      above_d = pair_d;
    } else if (row >= owned.row0 && row < owned.row1 && owns_column) {
      sum[(row >> 1) * row_stride] = fmaf(above_s + pair_s, 0.25f, shift);
      difference[(row >> 1) * row_stride] = (above_d + pair_d) * 0.25f;
    }
  }
};

// Where the map elements of a plane and what belongs to them stand.
struct MapPlane {
  std::int64_t map, upstream, mask;  // offsets of its first elements

  __device__ MapPlane(const March& m, std::int64_t plane) {
    const std::int64_t image = plane / m.channels, channel = plane % m.channels;
    map = m.extras.map.plane(image, channel);
    upstream = m.extras.upstream.plane(image, channel);
    mask = m.extras.mask.plane(image, channel);
  }
  __device__ float mask_at(const March& m, int row, int column) const {
    return m.extras.mask.load_f32(mask + m.extras.mask.at(0, row, column));
  }
  __device__ float upstream_at(const March& m, int row, int column) const {
    const gpu::View& view = m.extras.upstream;
    return view.load_f32(upstream + view.at(0, row - m.map_y0, column - m.map_x0));
  }
};

// The row of a strip of the map that a warp stores.
struct MapRow {
  float* first;  // this thread's element of the segment's row 0
  std::int64_t row_stride;
  unsigned wanted = 0;  // bit j: whether the strip owns the j-th column of this thread

  __device__ MapRow(const March& m, std::int64_t plane, int first_row, int column0)
      : row_stride(m.extras.map.strides[3]) {
    const int lane = static_cast<int>(threadIdx.x) % gpu::kWarp, centre = column0 + 5 + lane;
    first = static_cast<float*>(m.extras.map.data) + plane +
            (first_row + 5 - m.map_y0) * row_stride + centre - m.map_x0;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int column = lane + j * gpu::kWarp;
      const bool in_map = centre + j * gpu::kWarp >= m.map_x0 && centre + j * gpu::kWarp < m.map_x1;
      if (column < m.owned && in_map) wanted |= 1u << j;
    }
  }

  // 8 neighbours a thread come in; stores of neighbours in the warp fill whole sectors.
  __device__ __forceinline__ void store(int row, const float (&values)[8], float* staging) const {
    const int lane = static_cast<int>(threadIdx.x) % gpu::kWarp;
    float* const of_warp = staging + (static_cast<int>(threadIdx.x) - lane) * 8;
    store4(of_warp + lane * 8, values);
    store4(of_warp + lane * 8 + 4, values + 4);
    __syncwarp();
    float* const to = first + row * row_stride;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      if ((wanted >> j & 1) != 0) to[j * gpu::kWarp] = of_warp[lane + j * gpu::kWarp];
    }
    __syncwarp();
  }
};

}  // namespace similis::ssim_internal::march

#endif
