// SPDX-License-Identifier: Apache-2.0
// Composed fields, and the displacement that a stationary velocity makes in a unit of time.
#pragma once

#include "src/registration/geometry.h"

namespace similis::registration_internal {

/// to = d(x) + u(x + d(x)), with the border's value outside. Fields are in voxels, dense, of f32 or
/// f64; d may be u.
void compose(
    const Grid& grid, const Tensor& d, const Tensor& u, const Tensor& to, const Execution& exec);

/// u = exp(sign·v) - identity, both in voxels of the grid, dense: v/2ⁿ, and n times
/// u ← u + u(x + u), with the border's value outside. n: at least 6, until no vector of v/2ⁿ is
/// 1/4 voxel long.
void exponential(
    const Grid& grid, const Tensor& v, int sign, const Tensor& u, const Execution& exec);

}  // namespace similis::registration_internal
