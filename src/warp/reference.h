// SPDX-License-Identifier: Apache-2.0
// The oracle: torch's affine_grid and grid_sample voxel by voxel in f64, for tests and for readers
// who want the operations spelled out.
#pragma once

#include <vector>

#include "similis/warp.hpp"

namespace similis::warp_internal {

struct Reference {
  std::vector<double> output;
  std::vector<double> image_gradient, affine_gradient, grid_gradient, grid_affine_gradient;
  /// True where an index lies so near an integer (a half, for nearest) that slopes, or nearest's
  /// values, may come from the other side; one for each voxel of the output, not for each channel.
  std::vector<bool> is_at_a_kink;
};

/// The results for linear and nearest, and for cubic on coefficients; with upstream, all gradients.
Reference reference_sample(
    const TensorView& image, const SampleOptions& options, const TensorView& upstream = {});

/// Samples that the spline of these coefficients takes at the voxels, [N,C,…] in row-major order.
std::vector<double> reference_spline_samples(const TensorView& coefficients);

}  // namespace similis::warp_internal
