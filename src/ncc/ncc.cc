// SPDX-License-Identifier: Apache-2.0
// NCC: what is refused, what is allocated, and which backend runs.
#include "src/ncc/ncc.h"

#include "src/core/backend.h"
#include "src/core/tensor/allocated_results.h"
#include "src/window/validate.h"

namespace similis {

void ncc_into(const TensorView& x, const TensorView& y, const NccRequest& request,
    Reduction reduction, const Execution& exec) {
  require_image_pair("ncc", x, y);
  PixelPass pass = pixel_pass("ncc", x, y, reduction);
  pass.value = request.value;
  pass.upstream = request.upstream;
  pass.x_gradient = request.x_gradient;
  pass.y_gradient = request.y_gradient;
  require_results("ncc", pass);
  require_backend(x.device, "ncc", Runs::on_cpu_and_gpu);
  pass.x = as_volumes(pass.x);
  pass.y = as_volumes(pass.y);
  pass.x_gradient = as_volumes(pass.x_gradient);
  pass.y_gradient = as_volumes(pass.y_gradient);
  const std::int64_t averaged = reduction == Reduction::sum ? 1 : ncc_internal::planes_each(pass);
  pass.divisor = static_cast<double>(averaged) / request.weight;
#ifdef SIMILIS_HAS_CUDA
  if (x.device.kind == DeviceKind::cuda) return ncc_internal::ncc_cuda(pass, exec);
#endif
  ncc_internal::ncc_cpu(pass, exec);
}

Tensor ncc(const TensorView& x, const TensorView& y, Reduction reduction, const Execution& exec) {
  require_image_pair("ncc", x, y);
  const Extents shape = pixel_pass("ncc", x, y, reduction).result_shape;
  const Tensor value = allocate(shape, DType::f64, x.device, exec);
  ncc_into(x, y, {.value = value}, reduction, exec);
  return value;
}

ValueAndGradient ncc_value_and_gradient(const TensorView& x, const TensorView& y, GradientOf wrt,
    Reduction reduction, const Execution& exec) {
  require_image_pair("ncc", x, y);
  const Extents shape = pixel_pass("ncc", x, y, reduction).result_shape;
  NccRequest request;
  ValueAndGradient results =
      allocate_outputs("ncc", value_and_gradients(wrt), x, {shape, DType::f64}, exec, request);
  ncc_into(x, y, request, reduction, exec);
  return results;
}

}  // namespace similis
