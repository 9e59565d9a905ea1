// SPDX-License-Identifier: Apache-2.0
#include "src/core/tensor/allocated_results.h"

#include "src/core/require.h"
#include "src/core/tensor/dispatch.h"

namespace similis {

ValueAndGradient allocate_outputs(const char* operation, Outputs outputs, const TensorView& x,
    const ValueForm& value, const Execution& exec) {
  require(is_floating_point(x.dtype) || !(outputs.x_gradient || outputs.y_gradient),
      "{}: a gradient is asked for, and the images are {}; gradients need float16, bfloat16, "
      "float32 or float64",
      operation, x.dtype);
  ValueAndGradient results;
  if (outputs.value) results.value = allocate(value.shape, value.dtype, x.device, exec);
  if (outputs.x_gradient) results.x_gradient = allocate(x.shape, x.dtype, x.device, exec);
  if (outputs.y_gradient) results.y_gradient = allocate(x.shape, x.dtype, x.device, exec);
  return results;
}

}  // namespace similis
