// SPDX-License-Identifier: Apache-2.0
// Loads and stores of the kOutputs centres of a thread, which lie side by side in a row.
#pragma once

#include "src/lncc/cuda/fast_path.h"

namespace similis::lncc_internal {

/// Load or store the f32 of a run of centres in memory, `count` of them, four at once if
/// `is_whole`.
__device__ __forceinline__ void load_run(
    const float* from, std::int64_t stride, int count, bool is_whole, float (&run)[kOutputs]) {
  if (is_whole) {
#pragma unroll
    for (int i = 0; i < kOutputs; i += 4) {
      if (i >= count) break;
      const float4 four = *reinterpret_cast<const float4*>(from + i);
      run[i] = four.x, run[i + 1] = four.y, run[i + 2] = four.z, run[i + 3] = four.w;
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kOutputs; ++i) {
    if (i < count) run[i] = from[i * stride];
  }
}
__device__ __forceinline__ void store_run(
    float* to, std::int64_t stride, int count, bool is_whole, const float (&run)[kOutputs]) {
  if (is_whole) {
#pragma unroll
    for (int i = 0; i < kOutputs; i += 4) {
      if (i >= count) break;
      *reinterpret_cast<float4*>(to + i) = make_float4(run[i], run[i + 1], run[i + 2], run[i + 3]);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kOutputs; ++i) {
    if (i < count) to[i * stride] = run[i];
  }
}
/// Loads weights of a byte, all at once if `is_whole`.
__device__ __forceinline__ void load_run(const std::uint8_t* from, std::int64_t stride, int count,
    bool is_whole, float (&run)[kOutputs]) {
  static_assert(kOutputs == sizeof(uint2));
  if (is_whole && count == kOutputs) {
    const uint2 all = *reinterpret_cast<const uint2*>(from);
#pragma unroll
    for (int i = 0; i < kOutputs; ++i) {
      run[i] = static_cast<float>((i < 4 ? all.x : all.y) >> (8 * (i % 4)) & 0xff);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kOutputs; ++i) {
    if (i < count) run[i] = from[i * stride];
  }
}

}  // namespace similis::lncc_internal
