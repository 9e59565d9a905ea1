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

// V2: sums the derivatives of a batch down a thread's two columns.
template <class P>
__device__ __forceinline__ void sum_derivatives_down(
    const float* b_rows, float* d_rows, int own, const float (&w)[6], float (&state)[3][2][10]) {
#pragma unroll
  for (int i = 0; i < P::kRows; ++i) {
#pragma unroll
    for (int f = 0; f < 3; ++f) {
      const float2 v = load2(b_rows + (f * P::kRows + i) * P::kPitch + own);
      const float first = push(state[f][0], v.x, w);
      store2(d_rows + (f * P::kRows + i) * P::kPitch + own, first, push(state[f][1], v.y, w));
    }
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
