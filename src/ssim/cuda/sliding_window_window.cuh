// SPDX-License-Identifier: Apache-2.0
// Averages windows of 11 or 21 down and across, and loads and stores pixels, for the sliding window
// kernel.
#pragma once

#include "src/gpu/cuda/view.h"

#if !defined(__HIPCC__)

namespace similis::ssim_internal::sliding_window {

// Returns the completed sum; the state moves on by one row. There are behind + 1 taps.
template <int behind>
__device__ __forceinline__ float push(
    float (&state)[behind], float value, const float (&w)[behind / 2 + 1]) {
  constexpr int kRadius = behind / 2;
  const float complete = fmaf(w[0], value, state[0]);
#pragma unroll
  for (int k = 0; k < behind - 1; ++k) {
    const int tap = behind - 1 - k;
    state[k] = fmaf(w[tap <= kRadius ? tap : behind - tap], value, state[k + 1]);
  }
  state[behind - 1] = w[0] * value;
  return complete;
}

// out[o] = Σ w[k]·row[o + k]
template <int half, int first_taps>
__device__ __forceinline__ void across(
    const float* row, const float (&w)[first_taps], float (&out)[8]) {
  constexpr int kBehind = 2 * (first_taps - 1), kChunks = (8 + kBehind + 3) / 4;
  float in[4 * kChunks];
#pragma unroll
  for (int j = 0; j < kChunks; ++j) {
    const float4 chunk = *reinterpret_cast<const float4*>(row + (j & 1) * half + (j >> 1) * 4);
    in[4 * j] = chunk.x;
    in[4 * j + 1] = chunk.y;
    in[4 * j + 2] = chunk.z;
    in[4 * j + 3] = chunk.w;
  }
#pragma unroll
  for (int o = 0; o < 8; ++o) out[o] = w[0] * in[o];
#pragma unroll
  for (int k = 1; k <= kBehind; ++k) {
#pragma unroll
    for (int o = 0; o < 8; ++o) {
      out[o] = fmaf(w[k < first_taps ? k : kBehind - k], in[o + k], out[o]);
    }
  }
}

// Loads `count` neighbours in one access, as f32.
template <int count, class T> __device__ __forceinline__ void load_some(const T* p, float* out) {
  struct alignas(count * sizeof(T)) Pack {
    T of[count];
  };
  const Pack pack = *reinterpret_cast<const Pack*>(p);
#pragma unroll
  for (int i = 0; i < count; ++i) out[i] = gpu::to_float(pack.of[i]);
}
__device__ __forceinline__ float2 load2(const float* p) {
  return *reinterpret_cast<const float2*>(p);
}
// Stores one number, or two neighbours in one access.
__device__ __forceinline__ void store_some(float* p, const float (&v)[1]) { *p = v[0]; }
__device__ __forceinline__ void store_some(float* p, const float (&v)[2]) {
  *reinterpret_cast<float2*>(p) = make_float2(v[0], v[1]);
}
__device__ __forceinline__ void store4(float* p, const float* v) {
  *reinterpret_cast<float4*>(p) = make_float4(v[0], v[1], v[2], v[3]);
}

// Computes shifted sums and differences of pixels from the form in memory.
template <class Pairs, int count>
__device__ __forceinline__ void sums_of(const float (&x)[count], const float (&y)[count],
    float half_shift, float sign, float (&s)[count], float (&d)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) {
    s[i] = Pairs::kSums ? x[i] - 2 * half_shift : (x[i] - half_shift) + (y[i] - half_shift);
    d[i] = Pairs::kSums ? sign * y[i] : x[i] - y[i];
  }
}

// Stores 8 results, or as many as there are columns left; `to` is aligned to 16 bytes.
template <class T> __device__ __forceinline__ void store8(T* to, const float (&v)[8], int columns) {
  constexpr int kAtOnce = 16 / static_cast<int>(sizeof(T)), kEach = 4 / static_cast<int>(sizeof(T));
  union {
    T of[8];
    unsigned words[8 / kEach];
    uint4 packs[8 / kAtOnce];
  } all;
#pragma unroll
  for (int i = 0; i < 8 / kEach; ++i) {
    if constexpr (kEach == 2) {
      all.words[i] = gpu::rounded_pair<T>(v[2 * i], v[2 * i + 1]);
    } else {
      all.of[i] = v[i];
    }
  }
#pragma unroll
  for (int j = 0; j < 8 / kAtOnce; ++j) {
    if (columns >= (j + 1) * kAtOnce) {
      __stcs(reinterpret_cast<uint4*>(to) + j, all.packs[j]);
    } else {
#pragma unroll
      for (int o = j * kAtOnce; o < (j + 1) * kAtOnce - 1; ++o) {
        if (o < columns) to[o] = all.of[o];
      }
    }
  }
}
__device__ __forceinline__ void store8(
    void* to, DType dtype, std::int64_t offset, const float (&v)[8], int columns) {
  switch (dtype) {
    case DType::f16: return store8(static_cast<F16*>(to) + offset, v, columns);
    case DType::bf16: return store8(static_cast<BF16*>(to) + offset, v, columns);
    default: return store8(static_cast<float*>(to) + offset, v, columns);
  }
}

}  // namespace similis::ssim_internal::sliding_window

#endif
