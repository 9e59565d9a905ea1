// SPDX-License-Identifier: Apache-2.0
// Public functions of MSE, MAE and PSNR: refuse, allocate, and hand one pass to a backend.
#include "src/pixel_error/pixel_error.h"

#include <cmath>
#include <cstdint>

#include "similis/pixel_error.hpp"
#include "src/core/images.h"
#include "src/core/require.h"
#include "src/core/tensor/allocated_results.h"
#include "src/core/tensor/dispatch.h"
#include "src/core/validate.h"

namespace similis {
namespace {

using pixel_error_internal::kMae;
using pixel_error_internal::kMse;
using pixel_error_internal::kPsnr;
using pixel_error_internal::PsnrPass;
using PixelError = Operation<PixelPass>;

void finish(const PixelError& operation, PixelPass pass, const PixelErrorRequest& request,
    const Execution& exec) {
  take_results(operation.name(), pass, request);
  operation.run(pass, pass.x.device, exec);
}

PixelPass checked_pass(const OperationTable& operation, const TensorView& x, const TensorView& y,
    const PixelErrorOptions& options, const Execution& exec) {
  operation.check(&options);
  PixelPass pass = pixel_pass(operation.name, x, y, options.reduction);
  pass.mask = broadcast_mask(operation.name, "mask", options.mask, x, exec);
  return pass;
}

Tensor value_of(const PixelError& operation, const TensorView& x, const TensorView& y,
    const PixelErrorOptions& options, const Execution& exec) {
  const PixelPass pass = checked_pass(operation.table, x, y, options, exec);
  const Tensor value = allocate(pass.result_shape, result_dtype(x.dtype), x.device, exec);
  finish(operation, pass, {.value = value}, exec);
  return value;
}

ValueAndGradient value_and_gradient_of(const PixelError& operation, const TensorView& x,
    const TensorView& y, GradientOf wrt, const PixelErrorOptions& options, const Execution& exec) {
  const PixelPass pass = checked_pass(operation.table, x, y, options, exec);
  PixelErrorRequest request;
  ValueAndGradient results = allocate_outputs(operation, value_and_gradients(wrt), x,
      {pass.result_shape, result_dtype(x.dtype)}, exec, request);
  finish(operation, pass, request, exec);
  return results;
}

PsnrPass checked_psnr(
    const TensorView& x, const TensorView& y, const PsnrOptions& options, const Execution& exec) {
  kPsnr.table.check(&options);
  PsnrPass pass{.error = pixel_pass(kPsnr.name(), x, y, options.reduction),
      .data_range = data_range_of(kPsnr.name(), options.data_range, x.dtype),
      .value = {}};
  pass.error.mask = broadcast_mask(kPsnr.name(), "mask", options.mask, x, exec);
  return pass;
}

void finish_psnr(PsnrPass pass, const TensorView& value, const Execution& exec) {
  const Extents& shape = pass.error.result_shape;
  require(!value.empty(), "psnr: value is empty; it must have the result's shape, {}", shape);
  require_result("psnr", "value", value, shape, kFloat32OrFloat64, pass.error.x);
  kPsnr.require_runs_on(pass.error.x.device, exec);
  const Tensor error = allocate(shape, DType::f64, pass.error.x.device, exec);
  pass.error.value = error;
  pass.value = value;
  kPsnr.run(pass, pass.error.x.device, exec);
}

}  // namespace

Tensor mse(const TensorView& x, const TensorView& y, const PixelErrorOptions& options,
    const Execution& exec) {
  return value_of(kMse, x, y, options, exec);
}
Tensor mae(const TensorView& x, const TensorView& y, const PixelErrorOptions& options,
    const Execution& exec) {
  return value_of(kMae, x, y, options, exec);
}

Tensor psnr(
    const TensorView& x, const TensorView& y, const PsnrOptions& options, const Execution& exec) {
  const PsnrPass pass = checked_psnr(x, y, options, exec);
  const Tensor value = allocate(pass.error.result_shape, result_dtype(x.dtype), x.device, exec);
  finish_psnr(pass, value, exec);
  return value;
}

ValueAndGradient mse_value_and_gradient(const TensorView& x, const TensorView& y, GradientOf wrt,
    const PixelErrorOptions& options, const Execution& exec) {
  return value_and_gradient_of(kMse, x, y, wrt, options, exec);
}
ValueAndGradient mae_value_and_gradient(const TensorView& x, const TensorView& y, GradientOf wrt,
    const PixelErrorOptions& options, const Execution& exec) {
  return value_and_gradient_of(kMae, x, y, wrt, options, exec);
}

void mse_into(const TensorView& x, const TensorView& y, const PixelErrorRequest& request,
    const PixelErrorOptions& options, const Execution& exec) {
  finish(kMse, checked_pass(kMse.table, x, y, options, exec), request, exec);
}
void mae_into(const TensorView& x, const TensorView& y, const PixelErrorRequest& request,
    const PixelErrorOptions& options, const Execution& exec) {
  finish(kMae, checked_pass(kMae.table, x, y, options, exec), request, exec);
}

void psnr_into(const TensorView& x, const TensorView& y, const TensorView& value,
    const PsnrOptions& options, const Execution& exec) {
  finish_psnr(checked_psnr(x, y, options, exec), value, exec);
}

void pixel_error_internal::decibels_cpu(
    const TensorView& error, double data_range, const TensorView& value) {
  const double* errors = static_cast<const double*>(error.data());
  for (std::int64_t i = 0; i < error.shape.count(); ++i) {
    store_result(value, i, 10 * std::log10(data_range * data_range / errors[i]));
  }
}

}  // namespace similis
