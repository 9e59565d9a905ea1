// SPDX-License-Identifier: Apache-2.0
// Mutual information on the backend that a test has chosen: arrays are copied to the GPU and back.
#pragma once

#include <vector>

#include "similis/mutual_information.hpp"
#include "src/core/tensor/reduction.h"
#include "tests/arrays.h"
#include "tests/backends.h"
#include "tests/on_gpu.h"

namespace similis::test {

inline Extents value_shape(const Extents& shape, Reduction reduction) {
  return reduced_shape(shape, reduction, {shape[0], shape[1]});
}

inline void run_into(const TensorView& x, const TensorView& y,
    const MutualInformationRequest& request, MutualInformationOptions options) {
  if (!runs_on_gpu()) return similis::mutual_information_into(x, y, request, options);
  const OnGpu gpu_x(x), gpu_y(y), mask(options.mask), limits(options.limits),
      histogram(request.histogram), upstream(request.upstream), value(request.value),
      x_gradient(request.x_gradient), y_gradient(request.y_gradient);
  options.mask = mask.view();
  options.limits = limits.view();
  similis::mutual_information_into(gpu_x.view(), gpu_y.view(),
      {.form = request.form,
          .histogram = histogram.view(),
          .upstream = upstream.view(),
          .value = value.view(),
          .x_gradient = x_gradient.view(),
          .y_gradient = y_gradient.view()},
      options);
  for (const OnGpu* result : {&value, &x_gradient, &y_gradient}) result->bring_back();
}

inline std::vector<double> histogram_of(
    const TensorView& x, const TensorView& y, MutualInformationOptions options) {
  const Tensor result =
      allocate({x.shape[0], x.shape[1], options.num_bins, options.num_bins}, DType::f64);
  if (!runs_on_gpu()) {
    histogram_into(x, y, result, options);
    return to_doubles(result);
  }
  const OnGpu gpu_x(x), gpu_y(y), mask(options.mask), limits(options.limits), into(result);
  options.mask = mask.view();
  options.limits = limits.view();
  histogram_into(gpu_x.view(), gpu_y.view(), into.view(), options);
  into.bring_back();
  return to_doubles(result);
}

inline double value_of(
    const TensorView& x, const TensorView& y, const MutualInformationOptions& options) {
  const Tensor value = allocate({}, DType::f64);
  run_into(x, y, {.value = value}, options);
  return item(value);
}

struct ValueAndGradients {
  double value;
  std::vector<double> x_gradient, y_gradient;
};

inline ValueAndGradients value_and_gradients(
    const TensorView& x, const TensorView& y, const MutualInformationOptions& options) {
  const Tensor value = allocate({}, DType::f64);
  const Tensor by_x = allocate(x.shape, x.dtype), by_y = allocate(x.shape, x.dtype);
  run_into(x, y, {.value = value, .x_gradient = by_x, .y_gradient = by_y}, options);
  return {item(value), to_doubles(by_x), to_doubles(by_y)};
}

}  // namespace similis::test
