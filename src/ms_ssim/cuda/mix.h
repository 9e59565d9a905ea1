// SPDX-License-Identifier: Apache-2.0
// The gradient of MS-SSIM from those of its levels.
#pragma once

#include <array>
#include <vector>

#include "similis/execution.hpp"
#include "similis/tensor.hpp"
#include "src/window/halving.h"

namespace similis::ms_ssim_internal {

struct MixedLevel {
  TensorView own;                  ///< its gradient by the means of its planes, [N,C,D,H,W]
  std::array<Halving, 3> halving;  ///< to the next coarser level; of the coarsest, anything
};

/// Queues kernels that write, at each pixel of the finest level, the sum over `levels`, finest
/// first, of slope·own. slopes: [levels][planes], on the device. Levels that are computed in f32
/// are mixed at once where their rows allow that; else the gradients of coarser levels are
/// overwritten.
void mix_levels(const std::vector<MixedLevel>& levels, const double* slopes, bool are_f32,
    const TensorView& gradient, const Execution& exec);

}  // namespace similis::ms_ssim_internal
