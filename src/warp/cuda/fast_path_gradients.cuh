// SPDX-License-Identifier: Apache-2.0
// Parts that the kernels of the gradient to the field share.
#pragma once

#include "src/warp/cuda/fast_path_border.cuh"

namespace similis::warp_internal {

// Adds g times the slopes along x, y, z.
template <class L>
__device__ __forceinline__ void add_slopes(
    const float (&fraction)[L::rank], const Corners<L>& k, float g, float (&sum)[L::rank]) {
  const float fx = fraction[0], fy = fraction[1];
  const auto& v = k.v;
  if constexpr (L::rank == 2) {
    sum[0] = fmaf(g, mix(fy, v[1] - v[0], v[3] - v[2]), sum[0]);
    sum[1] = fmaf(g, mix(fx, v[2], v[3]) - mix(fx, v[0], v[1]), sum[1]);
  } else {
    const float fz = fraction[2];
    const float x0 = mix(fy, v[1] - v[0], v[3] - v[2]);
    const float x1 = mix(fy, v[5] - v[4], v[7] - v[6]);
    const float l0 = mix(fx, v[0], v[1]), l1 = mix(fx, v[2], v[3]);
    const float l2 = mix(fx, v[4], v[5]), l3 = mix(fx, v[6], v[7]);
    sum[0] = fmaf(g, mix(fz, x0, x1), sum[0]);
    sum[1] = fmaf(g, mix(fz, l1 - l0, l3 - l2), sum[1]);
    sum[2] = fmaf(g, mix(fy, l2, l3) - mix(fy, l0, l1), sum[2]);
  }
}

template <class E> __device__ __forceinline__ const E* image_of(const FastPass& p, int n, int c) {
  return static_cast<const E*>(p.image) + n * p.image_strides.image + c * p.image_channel;
}

// Makes gradients to folded indices gradients to indices; a voxel that is not inside has none.
template <class L>
__device__ __forceinline__ void apply_slopes(
    const Rim<L>& rim, unsigned inside, float (&sum)[kBatch][L::rank]) {
  if (L::folds && rim.any()) {
#pragma unroll
    for (int d = 0; d < kBatch; ++d) {
#pragma unroll
      for (int a = 0; a < L::rank; ++a) sum[d][a] *= rim.of(d, a);
    }
  }
#pragma unroll
  for (int d = 0; d < kBatch; ++d) {
#pragma unroll
    for (int a = 0; a < L::rank; ++a) sum[d][a] = inside >> d & 1u ? sum[d][a] : 0.0f;
  }
}

// Clears the gradient to the image, which the next kernel adds to: a thread takes the voxels that
// it has in the output. That costs no time beside its loads.
template <class L>
__device__ __forceinline__ void clear_sums(
    const FastPass& p, const FastColumn<L>& column, int first, int end) {
  if (p.sums == nullptr || !column.is_mine) return;
  float* of_image = p.sums + column.offset(p.sums_strides, column.z);
  for (int c = first; c < end; ++c) {
    float* to = of_image + c * p.sums_channel;
    for (int z = column.z; z < column.end; ++z, to += p.sums_strides.z) *to = 0;
  }
}

}  // namespace similis::warp_internal
