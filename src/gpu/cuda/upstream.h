// SPDX-License-Identifier: Apache-2.0
// The upstream gradient of a measure without a map, in a kernel.
#pragma once

#include <cstdint>

#include "src/gpu/cuda/view.h"

namespace similis::gpu {

/// Of a result without axes, [N] or [N,C]; 1 without data.
struct Upstream {
  const void* data;
  DType dtype;
  std::int64_t strides[2], channels;

  explicit Upstream(const TensorView& view)
      : data(view.data()), dtype(view.dtype), strides{0, 0}, channels(1) {
    const int rank = view.empty() ? 0 : view.shape.rank();
    if (rank > 0) strides[0] = view.strides[0];
    if (rank > 1) {
      strides[1] = view.strides[1];
      channels = view.shape[1];
    }
  }
  __device__ double of(std::int64_t result) const {
    if (data == nullptr) return 1;
    return load_element(
        data, dtype, result / channels * strides[0] + result % channels * strides[1]);
  }
};

}  // namespace similis::gpu
