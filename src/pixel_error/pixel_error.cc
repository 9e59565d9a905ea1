// SPDX-License-Identifier: Apache-2.0
// MSE, MAE and PSNR: what is refused, what is allocated, and which backend runs.
#include "similis/pixel_error.hpp"

#include <cmath>

#include "src/core/backend.h"
#include "src/core/dispatch.h"
#include "src/core/require.h"
#include "src/pixel_error/pixel_error.h"
#include "src/window/validate.h"

namespace similis {
namespace {

using pixel_error_internal::Error;
using pixel_error_internal::pixel_error_cpu;

// The public function that refuses, and the error that it averages.
struct Operation {
  const char* name;
  Error error;
};
constexpr Operation kMse{"mse", Error::squared};
constexpr Operation kMae{"mae", Error::absolute};
constexpr Operation kPsnr{"psnr", Error::squared};

int kept_axes(Reduction reduction) {
  if (reduction == Reduction::per_channel) return 2;
  return reduction == Reduction::per_image ? 1 : 0;
}

Extents result_shape(const Extents& shape, Reduction reduction) {
  Extents result = {shape[0], shape[1]};
  if (reduction == Reduction::per_channel) return result;
  if (reduction == Reduction::per_image) return {shape[0]};
  return {};
}

void require_alike(const char* name, const TensorView& x, const TensorView& y) {
  const int rank = x.shape.rank();
  require(rank >= 2, "{}: x has shape {}; it must have 2 to 8 axes, [N, C, ...]", name, x.shape);
  require(
      x.shape.count() > 0, "{}: x has shape {}; every extent must be at least 1", name, x.shape);
  require(!x.empty() && !y.empty(), "{}: {} has no data", name, x.empty() ? "x" : "y");
  require(
      y.shape == x.shape, "{}: y has shape {}; it must be that of x, {}", name, y.shape, x.shape);
  require(y.dtype == x.dtype, "{}: y is {}; it must be {} as x is", name, y.dtype, x.dtype);
  require(
      y.device == x.device, "{}: y is on {}; it must be on {} as x is", name, y.device, x.device);
}

void require_reduction(const char* name, Reduction reduction) {
  require(reduction != Reduction::none,
      "{}: reduction is none; it must be mean, sum, per_image or per_channel", name);
}

// A view of the request: `what` names it.
void require_result(const char* name, const char* what, const TensorView& view,
    const Extents& shape, const TensorView& x) {
  if (view.empty()) return;
  require(view.shape == shape, "{}: {} has shape {}; it must be that of the result, {}", name, what,
      view.shape, shape);
  require(view.dtype == DType::f32 || view.dtype == DType::f64,
      "{}: {} is {}; it must be float32 or float64", name, what, view.dtype);
  require(view.device == x.device, "{}: {} is on {}; it must be on {} as x is", name, what,
      view.device, x.device);
}

void require_value(
    const char* name, const TensorView& value, const Extents& shape, const TensorView& x) {
  require_result(name, "value", value, shape, x);
  require(value.empty() || value.strides == dense_strides(shape),
      "{}: value has strides {}; it must be dense, {}", name, value.strides, dense_strides(shape));
}

void run(const Operation& operation, const TensorView& x, const TensorView& y,
    const PixelErrorRequest& request, Reduction reduction, const Execution& exec) {
  require_alike(operation.name, x, y);
  require_reduction(operation.name, reduction);
  const Extents shape = result_shape(x.shape, reduction);
  require_value(operation.name, request.value, shape, x);
  require_result(operation.name, "upstream", request.upstream, shape, x);
  require_gradient(operation.name, "x_gradient", request.x_gradient, x);
  require_gradient(operation.name, "y_gradient", request.y_gradient, x);
  require_backend(x.device, operation.name);
  const double pixels = static_cast<double>(x.shape.count() / shape.count());
  pixel_error_cpu({.x = x,
                      .y = y,
                      .error = operation.error,
                      .kept_axes = kept_axes(reduction),
                      .divisor = reduction == Reduction::sum ? 1 : pixels,
                      .value = request.value,
                      .upstream = request.upstream,
                      .x_gradient = request.x_gradient,
                      .y_gradient = request.y_gradient},
      exec);
}

Tensor value_of(const Operation& operation, const TensorView& x, const TensorView& y,
    Reduction reduction, const Execution& exec) {
  require_alike(operation.name, x, y);
  require_reduction(operation.name, reduction);
  const Tensor value =
      allocate(result_shape(x.shape, reduction), result_dtype(x.dtype), x.device, exec);
  run(operation, x, y, {.value = value}, reduction, exec);
  return value;
}

ValueAndGradient value_and_gradient_of(const Operation& operation, const TensorView& x,
    const TensorView& y, GradientOf wrt, Reduction reduction, const Execution& exec) {
  require_alike(operation.name, x, y);
  require_reduction(operation.name, reduction);
  ValueAndGradient result;
  result.value = allocate(result_shape(x.shape, reduction), result_dtype(x.dtype), x.device, exec);
  if (wrt != GradientOf::y) result.x_gradient = allocate(x.shape, x.dtype, x.device, exec);
  if (wrt != GradientOf::x) result.y_gradient = allocate(x.shape, x.dtype, x.device, exec);
  run(operation, x, y,
      {.value = result.value, .x_gradient = result.x_gradient, .y_gradient = result.y_gradient},
      reduction, exec);
  return result;
}

double default_data_range(DType dtype) {
  if (dtype == DType::u8) return 255;
  return dtype == DType::u16 ? 65535 : 1;
}

void require_psnr_options(const PsnrOptions& options) {
  require(options.reduction != Reduction::none && options.reduction != Reduction::sum,
      "psnr: reduction is {}; it must be mean, per_image or per_channel",
      options.reduction == Reduction::none ? "none" : "sum");
  const double range = options.data_range.value_or(1);
  require(range > 0 && std::isfinite(range), "psnr: data_range is {}; it must be positive", range);
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
  require_alike(kPsnr.name, x, y);
  require_psnr_options(options);
  const Tensor value =
      allocate(result_shape(x.shape, options.reduction), result_dtype(x.dtype), x.device, exec);
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
  require_alike(kPsnr.name, x, y);
  require_psnr_options(options);
  const Extents shape = result_shape(x.shape, options.reduction);
  require(!value.empty(), "psnr: value is empty; it must have the result's shape, {}", shape);
  require_value(kPsnr.name, value, shape, x);
  const Tensor error = allocate(shape, DType::f64, x.device, exec);
  run(kPsnr, x, y, {.value = error}, options.reduction, exec);
  const double range = options.data_range.value_or(default_data_range(x.dtype));
  for (std::int64_t i = 0; i < shape.count(); ++i) {
    const double decibels = 10 * std::log10(range * range / error.elements<double>()[i]);
    if (value.dtype == DType::f64) {
      static_cast<double*>(value.data)[i] = decibels;
    } else {
      static_cast<float*>(value.data)[i] = static_cast<float>(decibels);
    }
  }
}

}  // namespace similis
