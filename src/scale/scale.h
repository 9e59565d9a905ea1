// SPDX-License-Identifier: Apache-2.0
// The walk of scale() over a tensor: axes that step through memory as one are merged.
#pragma once

#include <cstdint>

#include "similis/execution.hpp"
#include "similis/tensor.hpp"
#include "src/core/host_device.h"

namespace similis::scale_internal {

/// The axes of an array, the finest first; a dense one has a single axis, whatever their order.
struct Walk {
  int rank = 0;
  std::int64_t count = 1;  ///< elements
  std::int64_t extent[kMaxRank] = {}, stride[kMaxRank] = {};

  explicit Walk(const TensorView& tensor);
  bool is_dense() const { return rank == 0 || (rank == 1 && stride[0] == 1); }
  SIMILIS_HOST_DEVICE std::int64_t offset(std::int64_t index) const {
    std::int64_t result = 0;
    for (int axis = 0; axis < rank; ++axis) {
      result += index % extent[axis] * stride[axis];
      index /= extent[axis];
    }
    return result;
  }
};

struct Pass {
  TensorView tensor, factor;
};
void scale_cpu(const Pass& pass, const Execution& exec);
void scale_cuda(const Pass& pass, const Execution& exec);

}  // namespace similis::scale_internal
