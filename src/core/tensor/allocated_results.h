// SPDX-License-Identifier: Apache-2.0
// Results that a function of a room allocates and returns: each such function is a request for some
// of them, and calls the one (`…_into`) that writes into memory of its caller.
#pragma once

#include "similis/execution.hpp"
#include "similis/gradient.hpp"
#include "similis/tensor.hpp"
#include "src/core/operation.h"

namespace similis {

/// The results that a function returns.
struct Outputs {
  bool value = false, x_gradient = false, y_gradient = false;
};

inline Outputs gradients(GradientOf wrt) {
  return {.x_gradient = wrt != GradientOf::y, .y_gradient = wrt != GradientOf::x};
}
inline Outputs value_and_gradients(GradientOf wrt) {
  return {.value = true, .x_gradient = wrt != GradientOf::y, .y_gradient = wrt != GradientOf::x};
}

/// The value's shape and dtype.
struct ValueForm {
  Extents shape;
  DType dtype;
};

/// Allocates them, on the device of x, whose shape and dtype the gradients have. Refuses gradients
/// of integers; `operation` must run on the device.
ValueAndGradient allocate_outputs(const char* operation, Outputs outputs, const TensorView& x,
    const ValueForm& value, const Execution& exec);

/// The same, with the request told to write there.
template <class Pass, class Request>
ValueAndGradient allocate_outputs(const Operation<Pass>& operation, Outputs outputs,
    const TensorView& x, const ValueForm& value, const Execution& exec, Request& request) {
  operation.require_runs_on(x.device, exec);
  ValueAndGradient results = allocate_outputs(operation.name(), outputs, x, value, exec);
  request.value = results.value;
  request.x_gradient = results.x_gradient;
  request.y_gradient = results.y_gradient;
  return results;
}

}  // namespace similis
