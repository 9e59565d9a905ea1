// SPDX-License-Identifier: Apache-2.0
// The upstream gradient of a measure without a map, in a kernel.
#pragma once

#include <cstdint>

#include "src/gpu/cuda/view.h"

namespace similis::gpu {

/// The upstream gradient of a scalar result, of [N] or of [N,C]; 1 without data.
struct Upstream {
  const void* data = nullptr;
  DType dtype = DType::f32;
  std::int64_t strides[2] = {}, channels = 1;

  Upstream() = default;
  /// of() then takes the number of a result.
  explicit Upstream(const TensorView& view)
      : Upstream(view, !view.empty() && view.shape.rank() > 1 ? view.shape[1] : 1) {}
  /// of() then takes the number of a plane, of which each image has `plane_channels`.
  Upstream(const TensorView& view, std::int64_t plane_channels)
      : data(view.data()), dtype(view.dtype), channels(plane_channels) {
    const int rank = view.empty() ? 0 : view.shape.rank();
    if (rank > 0) strides[0] = view.strides[0];
    if (rank > 1) strides[1] = view.strides[1];
  }
  __device__ double of(std::int64_t index) const {
    if (data == nullptr) return 1;
    return load_element(data, dtype, index / channels * strides[0] + index % channels * strides[1]);
  }
};

}  // namespace similis::gpu
