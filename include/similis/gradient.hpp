// SPDX-License-Identifier: Apache-2.0
// What operations with gradients return.
#pragma once

#include <cstdint>

#include "similis/tensor.hpp"

namespace similis {

/// Which images a gradient is wanted for.
enum class GradientOf : std::uint8_t { x, y, both };

struct ValueAndGradient {
  Tensor value;
  Tensor x_gradient;  ///< empty unless asked for; shape and dtype of x, dense
  Tensor y_gradient;  ///< likewise
};

}  // namespace similis
