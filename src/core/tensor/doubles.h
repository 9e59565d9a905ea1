// SPDX-License-Identifier: Apache-2.0
// How references read an array: any strides, any dtype, as doubles.
#pragma once

#include <vector>

#include "similis/tensor.hpp"

namespace similis {

/// The elements of an array on the CPU in row-major order.
std::vector<double> to_doubles(const TensorView& view);

}  // namespace similis
