// SPDX-License-Identifier: Apache-2.0
// MSE, MAE and PSNR: what is refused, what is allocated, and which backend runs.
#include "similis/pixel_error.hpp"

#include <cmath>

#include "src/core/backend.h"
#include "src/core/require.h"
#include "src/core/tensor/allocated_results.h"
#include "src/core/tensor/dispatch.h"
#include "src/core/validate.h"
#include "src/pixel_error/pixel_error.h"

namespace similis {
namespace {

using pixel_error_internal::decibels_cpu;
using pixel_error_internal::decibels_cuda;
using pixel_error_internal::Error;
using pixel_error_internal::pixel_error_cpu;
using pixel_error_internal::pixel_error_cuda;

// The public function that refuses, and the error that it averages.
struct Operation {
  const char* name;
  Error error;
};
constexpr Operation kMse{"mse", Error::squared};
constexpr Operation kMae{"mae", Error::absolute};
constexpr Operation kPsnr{"psnr", Error::squared};

void run(const Operation& operation, const TensorView& x, const TensorView& y,
    const PixelErrorRequest& request, Reduction reduction, const Execution& exec) {
  PixelPass pass = pixel_pass(operation.name, x, y, reduction);
  pass.value = request.value;
  pass.upstream = request.upstream;
  pass.x_gradient = request.x_gradient;
  pass.y_gradient = request.y_gradient;
  require_results(operation.name, pass);
  require_backend(x.device, operation.name, Runs::on_cpu_and_gpu);
#ifdef SIMILIS_HAS_CUDA
  if (x.device.kind == DeviceKind::cuda) return pixel_error_cuda(operation.error, pass, exec);
#endif
  pixel_error_cpu(operation.error, pass, exec);
}

Tensor value_of(const Operation& operation, const TensorView& x, const TensorView& y,
    Reduction reduction, const Execution& exec) {
  const Extents shape = pixel_pass(operation.name, x, y, reduction).result_shape;
  const Tensor value = allocate(shape, result_dtype(x.dtype), x.device, exec);
  run(operation, x, y, {.value = value}, reduction, exec);
  return value;
}

ValueAndGradient value_and_gradient_of(const Operation& operation, const TensorView& x,
    const TensorView& y, GradientOf wrt, Reduction reduction, const Execution& exec) {
  const Extents shape = pixel_pass(operation.name, x, y, reduction).result_shape;
  PixelErrorRequest request;
  ValueAndGradient results = allocate_outputs(
      operation.name, value_and_gradients(wrt), x, {shape, result_dtype(x.dtype)}, exec, request);
  run(operation, x, y, request, reduction, exec);
  return results;
}

PixelPass checked_psnr(const TensorView& x, const TensorView& y, const PsnrOptions& options) {
  require(options.reduction != Reduction::none && options.reduction != Reduction::sum,
      "psnr: reduction is {}; it must be mean, per_image or per_channel",
      options.reduction == Reduction::none ? "none" : "sum");
  checked_data_range(kPsnr.name, options.data_range, x.dtype);
  return pixel_pass(kPsnr.name, x, y, options.reduction);
}

}  // namespace

Tensor mse(const TensorView& x, const TensorView& y, Reduction reduction, const Execution& exec) {
  return value_of(kMse, x, y, reduction, exec);
}

Tensor mae(const TensorView& x, const TensorView& y, Reduction reduction, const Execution& exec) {
  return value_of(kMae, x, y, reduction, exec);
}

Tensor psnr(
    const TensorView& x, const TensorView& y, const PsnrOptions& options, const Execution& exec) {
  const Tensor value =
      allocate(checked_psnr(x, y, options).result_shape, result_dtype(x.dtype), x.device, exec);
  psnr_into(x, y, value, options, exec);
  return value;
}

ValueAndGradient mse_value_and_gradient(const TensorView& x, const TensorView& y, GradientOf wrt,
    Reduction reduction, const Execution& exec) {
  return value_and_gradient_of(kMse, x, y, wrt, reduction, exec);
}

ValueAndGradient mae_value_and_gradient(const TensorView& x, const TensorView& y, GradientOf wrt,
    Reduction reduction, const Execution& exec) {
  return value_and_gradient_of(kMae, x, y, wrt, reduction, exec);
}

void mse_into(const TensorView& x, const TensorView& y, const PixelErrorRequest& request,
    Reduction reduction, const Execution& exec) {
  run(kMse, x, y, request, reduction, exec);
}

void mae_into(const TensorView& x, const TensorView& y, const PixelErrorRequest& request,
    Reduction reduction, const Execution& exec) {
  run(kMae, x, y, request, reduction, exec);
}

void psnr_into(const TensorView& x, const TensorView& y, const TensorView& value,
    const PsnrOptions& options, const Execution& exec) {
  PixelPass checked = checked_psnr(x, y, options);
  const Extents& shape = checked.result_shape;
  require(!value.empty(), "psnr: value is empty; it must have the result's shape, {}", shape);
  checked.value = value;
  require_results(kPsnr.name, checked);
  const Tensor error = allocate(shape, DType::f64, x.device, exec);
  run(kPsnr, x, y, {.value = error}, options.reduction, exec);
  const double range = checked_data_range(kPsnr.name, options.data_range, x.dtype);
#ifdef SIMILIS_HAS_CUDA
  if (x.device.kind == DeviceKind::cuda) return decibels_cuda(error, range, value, exec);
#endif
  decibels_cpu(error, range, value);
}

void pixel_error_internal::decibels_cpu(
    const TensorView& error, double data_range, const TensorView& value) {
  const double* errors = static_cast<const double*>(error.data);
  for (std::int64_t i = 0; i < error.shape.count(); ++i) {
    store_result(value, i, 10 * std::log10(data_range * data_range / errors[i]));
  }
}

}  // namespace similis
