// SPDX-License-Identifier: Apache-2.0
// MSE or MAE into a test's arrays.
#pragma once

#include "similis/pixel_error.hpp"
#include "src/pixel_error/pixel_error.h"
#include "tests/backends.h"
#include "tests/on_gpu.h"

namespace similis::pixel_error_internal {

/// On the chosen backend: arrays are copied to the GPU and back.
inline void into(Error error, const TensorView& x, const TensorView& y,
    const PixelErrorRequest& request, const PixelErrorOptions& options) {
  const auto function = error == Error::squared ? mse_into : mae_into;
  if (!test::runs_on_gpu()) return function(x, y, request, options, {});
  const test::OnGpu gpu_x(x), gpu_y(y), upstream(request.upstream), value(request.value),
      x_gradient(request.x_gradient), y_gradient(request.y_gradient), mask(options.mask);
  function(gpu_x.view(), gpu_y.view(),
      {.upstream = upstream.view(),
          .value = value.view(),
          .x_gradient = x_gradient.view(),
          .y_gradient = y_gradient.view()},
      {.reduction = options.reduction, .mask = mask.view()}, {});
  for (const test::OnGpu* result : {&value, &x_gradient, &y_gradient}) result->bring_back();
}

}  // namespace similis::pixel_error_internal
