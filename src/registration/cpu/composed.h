// SPDX-License-Identifier: Apache-2.0
// Fields composed, smoothed and rounded in one pass on the CPU.
#pragma once

#include "similis/execution.hpp"
#include "src/registration/geometry.h"

namespace similis::registration_internal {

/// Options for d(x) + u(x + d(x)), d = factor·along.
struct Composition {
  double factor = 1;
  double smoothing = 0;  ///< σ of a Gaussian in voxels
  double unit = 0;       ///< sums become multiples of it, in f64; 0: they stay
};

/// Returns true if compose_cpu() takes such fields: volumes on the CPU, and a Gaussian of one
/// voxel's reach.
bool can_compose_cpu(const Grid& grid, const Composition& how);

/// `to` is neither `along` nor u, which may be one. Bits do not depend on threads.
void compose_cpu(const Grid& grid, const Tensor& along, const Tensor& u, const Composition& how,
    const Tensor& to, const Execution& exec);

}  // namespace similis::registration_internal
