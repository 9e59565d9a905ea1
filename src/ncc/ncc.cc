// SPDX-License-Identifier: Apache-2.0
// NCC's public functions: refuse, allocate, and hand one pass to a backend.
#include "src/ncc/ncc.h"

#include "src/core/images.h"
#include "src/core/tensor/allocated_results.h"

namespace similis {
namespace {
using ncc_internal::kNcc;

PixelPass checked_pass(const TensorView& x, const TensorView& y, Reduction reduction) {
  require_image_pair("ncc", x, y);
  return pixel_pass(kNcc.table, x, y, reduction);
}

// Completes a checked pass by what the request says, and runs it.
void finish(PixelPass pass, const NccRequest& request, Reduction reduction, const Execution& exec) {
  take_results("ncc", pass, request);
  pass.x = as_volumes(pass.x);
  pass.y = as_volumes(pass.y);
  pass.x_gradient = as_volumes(pass.x_gradient);
  pass.y_gradient = as_volumes(pass.y_gradient);
  const std::int64_t averaged = reduction == Reduction::sum ? 1 : ncc_internal::planes_each(pass);
  pass.divisor = static_cast<double>(averaged) / request.weight;
  kNcc.run(pass, pass.x.device, exec);
}

}  // namespace

void ncc_into(const TensorView& x, const TensorView& y, const NccRequest& request,
    Reduction reduction, const Execution& exec) {
  finish(checked_pass(x, y, reduction), request, reduction, exec);
}

Tensor ncc(const TensorView& x, const TensorView& y, Reduction reduction, const Execution& exec) {
  const PixelPass pass = checked_pass(x, y, reduction);
  const Tensor value = allocate(pass.result_shape, DType::f64, x.device, exec);
  finish(pass, {.value = value}, reduction, exec);
  return value;
}

ValueAndGradient ncc_value_and_gradient(const TensorView& x, const TensorView& y, GradientOf wrt,
    Reduction reduction, const Execution& exec) {
  const PixelPass pass = checked_pass(x, y, reduction);
  NccRequest request;
  ValueAndGradient results = allocate_outputs(
      kNcc, value_and_gradients(wrt), x, {pass.result_shape, DType::f64}, exec, request);
  finish(pass, request, reduction, exec);
  return results;
}

}  // namespace similis
