// SPDX-License-Identifier: Apache-2.0
// Steps of the sliding window kernel that it inlines without a change of its machine code. V1, H1
// and H2 stand in the kernel itself: taken out of it, they are scheduled differently, with up to 4
// more registers and 0.5 % more instructions (nvcc 13.0).
#pragma once

#include "src/ssim/cuda/sliding_window_extras.cuh"
#include "src/ssim/cuda/sliding_window_layout.cuh"
#include "src/ssim/cuda/sliding_window_window.cuh"

#if !defined(__HIPCC__)

namespace similis::ssim_internal::sliding_window {

// V2: sums the derivatives of a batch down a thread's columns.
template <class P>
__device__ __forceinline__ void sum_derivatives_down(const float* b_rows, float* d_rows, int own,
    const float (&w)[P::kRadius + 1], float (&state)[3][P::kColumnsEach][P::kBehind]) {
#pragma unroll
  for (int i = 0; i < P::kRows; ++i) {
#pragma unroll
    for (int f = 0; f < 3; ++f) {
      float v[P::kColumnsEach], out[P::kColumnsEach];
      load_some<P::kColumnsEach>(b_rows + (f * P::kRows + i) * P::kPitch + own, v);
#pragma unroll
      for (int k = 0; k < P::kColumnsEach; ++k) out[k] = push(state[f][k], v[k], w);
      store_some(d_rows + (f * P::kRows + i) * P::kPitch + own, out);
    }
  }
}

// The weights of a thread's pixels on the way down, of a batch of rows.
template <class P> struct PixelWeights {
  static constexpr int kFetched = P::kIsMasked ? P::kRows : 1;
  const float* column;  // of row 0; null where no pixels are
  std::int64_t row_stride;
  int height;
  float2 of[kFetched];

  __device__ PixelWeights(const SlidingWindow& m, int image, int channel, int first_column)
      : column(nullptr), row_stride(m.extras.valid.pixel_row), height(m.height) {
    if (!P::kIsMasked || first_column < 0 || first_column >= m.width) return;
    column = m.extras.valid.pixels_of(image, channel) + first_column;
  }
  __device__ __forceinline__ void fetch(int row) {
#pragma unroll
    for (int i = 0; i < kFetched; ++i) {
      const bool exists = column != nullptr && row + i >= 0 && row + i < height;
      of[i] = exists ? load2(column + (row + i) * row_stride) : make_float2(0.f, 0.f);
    }
  }
};

// The pixels that a segment loads.
struct Box {
  int column0, column1, row0, row1;
};

// Returns half of x + y at the first of 32 places on a diagonal, from the middle on, that weighs
// something and is finite: what no window sees has no influence. 0 if there is none.
__device__ __forceinline__ float weighed_middle(const SlidingWindow& m, int image, int channel,
    std::int64_t x_plane, std::int64_t y_plane, const Box& box) {
  const int lane = static_cast<int>(threadIdx.x) % gpu::kWarp;
  const int place = 33 + ((lane & 1) == 0 ? lane : -lane - 1);
  const auto between = [&](int first, int last) {
    return first + static_cast<int>(std::int64_t{last - first} * place / 66);
  };
  const int column = between(box.column0, box.column1), row = between(box.row0, box.row1);
  const float half =
      (static_cast<const float*>(m.any_x.data)[x_plane + m.any_x.at(0, row, column)] +
          static_cast<const float*>(m.any_y.data)[y_plane + m.any_y.at(0, row, column)]) /
      2;
  const float weight =
      m.extras.valid.pixels_of(image, channel)[row * m.extras.valid.pixel_row + column];
  const int first = gpu::first_lane(fabsf(half) < INFINITY && weight > 0);
  return __shfl_sync(0xffffffffu, first < gpu::kWarp ? half : 0.f, first % gpu::kWarp);
}

// Weighs the shifted sum and difference of a pixel, which may hold anything under a weight of 0.
__device__ __forceinline__ void weigh_pixel(
    float weight, float& s, float& d, float& squared_s, float& squared_d) {
  const float plain_s = weight == 0 ? 0.f : s, plain_d = weight == 0 ? 0.f : d;
  s = weight * plain_s;
  d = weight * plain_d;
  squared_s = s * plain_s;
  squared_d = d * plain_d;
}

// The weights of 8 windows, the first of them centred on `column`, at a row of them or null.
__device__ __forceinline__ void load_window_weights(
    const float* row, int column, float (&inverse)[8], float (&weight)[8]) {
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    float4 pair = {0, 0, 0, 0};
    if (row != nullptr) {
      pair = *reinterpret_cast<const float4*>(row + 2 * (column + ValidWeights::kBefore) + 4 * j);
    }
    inverse[2 * j] = pair.x;
    weight[2 * j] = pair.y;
    inverse[2 * j + 1] = pair.z;
    weight[2 * j + 1] = pair.w;
  }
}

// A pixel of the image.
struct Pixel {
  int row, column;
};

// Multiplies values and derivatives of 8 windows, from the one centred on `first` on, by their
// mask, and derivatives by upstream; `wanted` has a bit for each window of the map.
template <class P>
__device__ __forceinline__ void weigh(const SlidingWindow& m, const MapPlane& plane, Pixel first,
    unsigned wanted, float* staging, float (&weight)[8], float (&value)[8],
    float (&derivative)[3][8]) {
  if (m.extras.mask.data != nullptr) {
    load8(m.extras.mask, plane.mask + m.extras.mask.at(0, first.row, first.column), wanted, staging,
        weight);
#pragma unroll
    for (int o = 0; o < 8; ++o) {
      weight[o] = checked_weight(weight[o]);
      value[o] = weight[o] == 0 ? 0.f : weight[o] * value[o];
      if constexpr (P::kGradient) {
#pragma unroll
        for (int f = 0; f < 3; ++f) {
          derivative[f][o] = weight[o] == 0 ? 0.f : weight[o] * derivative[f][o];
        }
      }
    }
  }
  if (P::kGradient && m.extras.upstream.data != nullptr) {
    float factor[8];
    const gpu::View& upstream = m.extras.upstream;
    load8(upstream, plane.upstream + upstream.at(0, first.row - m.map_y0, first.column - m.map_x0),
        wanted, staging, factor);
#pragma unroll
    for (int o = 0; o < 8; ++o) {
#pragma unroll
      for (int f = 0; f < 3; ++f) derivative[f][o] *= factor[o];
    }
  }
}

}  // namespace similis::ssim_internal::sliding_window

#endif
