// SPDX-License-Identifier: Apache-2.0
// A smoothing, as smooth.cc hands it to a backend once everything about it is checked.
#pragma once

#include <array>
#include <vector>

#include "similis/smooth.hpp"
#include "src/core/operation.h"

namespace similis::smooth_internal {

/// The axes of SmoothPass's views.
enum Axis : int { kImage, kChannel, kZ, kY, kX, kComponent };

struct SmoothPass {
  TensorView x, output;                     ///< [N,C,Z,Y,X,1] of an image, [N,1,Z,Y,X,d] of a field
  std::array<std::vector<double>, 3> taps;  ///< along z, y, x: t_0 … t_r; t_0 alone is 1
  bool is_zero_padded = false;              ///< else the outermost voxel is replicated
  bool is_adjoint = false;
};

/// The pass that smooth_into() hands to a backend for arguments that are right.
SmoothPass smooth_pass(
    const TensorView& x, const SmoothRequest& request, const SmoothOptions& options);

void smooth_cpu(const SmoothPass& pass, const Execution& exec);
void smooth_cuda(const SmoothPass& pass, const Execution& exec);

extern const Operation<SmoothPass> kSmooth;

}  // namespace similis::smooth_internal
