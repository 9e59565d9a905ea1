// SPDX-License-Identifier: Apache-2.0
// The elements of arrays of any strides and dtype as doubles, for references.
#pragma once

#include <vector>

#include "similis/tensor.hpp"

namespace similis {

/// The elements of an array on the CPU in row-major order.
std::vector<double> to_doubles(const TensorView& view);

/// The elements of a mask broadcast to the images' shape; empty without a mask. Axes are matched
/// from the last; an axis of extent 1, or one that the mask lacks, is repeated.
std::vector<double> broadcast_to_doubles(const TensorView& mask, const Extents& shape);

}  // namespace similis
