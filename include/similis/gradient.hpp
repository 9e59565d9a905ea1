// SPDX-License-Identifier: Apache-2.0
// What operations with gradients return, and what an upstream gradient makes of it.
#pragma once

#include <cstdint>

#include "similis/api.h"
#include "similis/execution.hpp"
#include "similis/tensor.hpp"

namespace similis {

/// Which images a gradient is wanted for.
enum class GradientOf : std::uint8_t { x, y, both };

struct ValueAndGradient {
  Tensor value;
  Tensor x_gradient;  ///< empty unless asked for; shape and dtype of x, dense
  Tensor y_gradient;  ///< likewise
};

/// Multiplies a tensor where it stands: the gradient of a mean, that was found before its upstream
/// gradient was known, by that. A factor of 1, which it is in most training steps, leaves the
/// memory alone; on a GPU it is read there, and nothing waits for it.
/// tensor: f16, bf16, f32 or f64, any shape and strides; factor: one element of such a dtype, on
/// the tensor's device. Products are rounded to f32 (f64 for f64), then to the tensor's dtype.
/// Throws InvalidArgument if one of them is not like that, or if two elements share a place.
SIMILIS_API void scale(
    const TensorView& tensor, const TensorView& factor, const Execution& exec = {});

}  // namespace similis
