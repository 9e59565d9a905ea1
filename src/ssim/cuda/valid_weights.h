// SPDX-License-Identifier: Apache-2.0
// The weights of pixels and windows under a valid_mask, which the sliding window reads.
#pragma once

#include <memory>

#include "src/ssim/cuda/sliding_window.h"

namespace similis::ssim_internal {

/// Queues the kernel that finds the weights, 12 B for each pixel of the mask, and puts their sums
/// in plan.sums. Windows are 11×11, and padding is valid or renormalize. `memory` owns the result.
ValidWeights find_valid_weights(CudaPlan& plan, std::shared_ptr<void>& memory);

}  // namespace similis::ssim_internal
