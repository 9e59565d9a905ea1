// SPDX-License-Identifier: Apache-2.0
// Damped Gauss-Newton steps. A step along the smoothed gradient is decided by the sharpest edges:
// where edges are weak, or where a mask leaves a window few voxels, the field lags behind. With H,
// the smoothed curvature of LNCC about each voxel, λ(H + λ)⁻¹ shortens what leads across sharp
// edges and leaves the rest: between 0 and 1 times each direction. H is smooth and changes little
// while the field does, so it is FIXED's, formed once, and lies on every kCurvatureStride-th voxel.
#pragma once

#include "src/registration/deformable.h"
#include "src/registration/passes.h"

namespace similis::registration_internal {

/// Q = H/λ as precondition() takes it, empty where the image shows nothing. fluid: the σ that
/// gradients are smoothed by, in voxels. damping: λ in thirds of H's mean trace in the tissue.
Tensor preconditioner(const Image& volume, double fluid, double damping, const Execution& exec);

/// The same where the settings ask for it, else empty.
inline Tensor level_preconditioner(
    const Image& fixed, const DeformableSettings& settings, const Execution& exec) {
  if (settings.damping == 0) return {};
  return preconditioner(fixed, settings.fluid, settings.damping, exec);
}

}  // namespace similis::registration_internal
