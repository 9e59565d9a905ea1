// SPDX-License-Identifier: Apache-2.0
// The results of operations with gradients, and scaling them by an upstream gradient.
#pragma once

#include <cstdint>

#include "similis/api.h"
#include "similis/execution.hpp"
#include "similis/tensor.hpp"

namespace similis {

/// The images to differentiate by.
enum class GradientOf : std::uint8_t { x, y, both };

struct ValueAndGradient {
  Tensor value;
  Tensor x_gradient;  ///< empty unless asked for; shape and dtype of x, dense
  Tensor y_gradient;  ///< likewise
};

/// Multiplies a tensor in place, such as the gradient of a mean by an upstream gradient that was
/// not known when it was computed. A factor of 1, as in most training steps, leaves the memory
/// alone; on a GPU the factor is read there, and nothing waits for it.
/// tensor: f16, bf16, f32 or f64, any shape and strides; factor: one element of such a dtype, on
/// the tensor's device. Products are rounded to f32 (f64 for f64), then to the tensor's dtype.
/// Throws InvalidArgument if dtypes, shapes or devices differ from these, or if two elements share
/// memory.
SIMILIS_API void scale(
    const TensorView& tensor, const TensorView& factor, const Execution& exec = {});

}  // namespace similis
