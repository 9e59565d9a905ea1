// SPDX-License-Identifier: Apache-2.0
// The stages maximise this: weighted metrics of two images on one grid, and its derivative.
#pragma once

#include <vector>

#include "similis/register.hpp"
#include "src/registration/geometry.h"

namespace similis::registration_internal {

/// The weighted sum of the metrics' means over the voxels that count and over channels.
/// f, j: [1,C,…], f32, dense. weights: [1,1,…], 1 or 0; empty: all count.
/// gradient: shaped as j, or empty. Set to the derivative of `count` times the value by j; 0 at
/// voxels that do not count.
double similarity(const std::vector<MetricTerm>& terms, const Grid& grid, const Tensor& f,
    const Tensor& j, const TensorView& weights, std::int64_t count, const TensorView& gradient,
    const Execution& exec);

}  // namespace similis::registration_internal
