// SPDX-License-Identifier: Apache-2.0
// Loads rows that the copy engine cannot take with threads.
#pragma once

#include "src/gpu/cuda/tensor_copy.h"
#include "src/ssim/cuda/sliding_window.h"

#if !defined(__HIPCC__)

namespace similis::ssim_internal::sliding_window {

#if SIMILIS_COPY_ENGINE

// The place of a batch in a plane.
struct Batch {
  int x, y;  // of the first element; may lie outside the image
};

// Loads a batch of both images with all threads; outside they are 0.
template <class P, class T>
__device__ __forceinline__ void gather_as(
    const SlidingWindow& m, std::int64_t x_plane, std::int64_t y_plane, Batch batch, float* slot) {
  constexpr int kRows = P::kRows;
  const T* const from[2] = {
      static_cast<const T*>(m.any_x.data) + x_plane, static_cast<const T*>(m.any_y.data) + y_plane};
#pragma unroll 2
  for (int i = 0; i < kRows; ++i) {
    const int y = batch.y + i;
    float value[2][2];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int x = batch.x + static_cast<int>(threadIdx.x) + k * P::kThreads;
      const bool exists = x >= 0 && x < m.width && y >= 0 && y < m.height;
      value[0][k] = exists ? gpu::to_float(from[0][m.any_x.at(0, y, x)]) : 0.f;
      value[1][k] = exists ? gpu::to_float(from[1][m.any_y.at(0, y, x)]) : 0.f;
    }
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      float* const to =
          slot + P::word_of(static_cast<int>(threadIdx.x) + k * P::kThreads) + i * P::kBox;
      to[0] = value[0][k];
      to[P::kImage] = value[1][k];
    }
  }
}

// Does the same for f32 images; the words arrive by themselves.
template <class P>
__device__ __forceinline__ void gather_words(
    const SlidingWindow& m, std::int64_t x_plane, std::int64_t y_plane, Batch batch, float* slot) {
  const float* const x_from = static_cast<const float*>(m.any_x.data) + x_plane;
  const float* const y_from = static_cast<const float*>(m.any_y.data) + y_plane;
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    const int column = static_cast<int>(threadIdx.x) + k * P::kThreads, x = batch.x + column;
    const bool has_column = x >= 0 && x < m.width;
    float* const to = slot + P::word_of(column);
    const float* from_x = x_from + m.any_x.at(0, batch.y, x);
    const float* from_y = y_from + m.any_y.at(0, batch.y, x);
#pragma unroll
    for (int i = 0; i < P::kRows; ++i) {
      const int y = batch.y + i;
      const bool exists = has_column && y >= 0 && y < m.height;
      gpu::copy_word(to + i * P::kBox, exists ? from_x : x_from, exists);
      gpu::copy_word(to + P::kImage + i * P::kBox, exists ? from_y : y_from, exists);
      from_x += m.any_x.strides[3];
      from_y += m.any_y.strides[3];
    }
  }
}
template <class P>
__device__ __forceinline__ void gather(
    const SlidingWindow& m, std::int64_t x_plane, std::int64_t y_plane, Batch batch, float* slot) {
  switch (m.any_x.dtype) {
    case DType::u8: return gather_as<P, std::uint8_t>(m, x_plane, y_plane, batch, slot);
    case DType::f16: return gather_as<P, F16>(m, x_plane, y_plane, batch, slot);
    case DType::bf16: return gather_as<P, BF16>(m, x_plane, y_plane, batch, slot);
    default: return gather_words<P>(m, x_plane, y_plane, batch, slot);
  }
}

#endif

}  // namespace similis::ssim_internal::sliding_window

#endif
