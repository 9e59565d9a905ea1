// SPDX-License-Identifier: Apache-2.0
// similis_mse(), similis_mae() and similis_psnr(): the functions of pixel_error.hpp for C.
#include "similis/c/pixel_error.h"

#include "similis/pixel_error.hpp"
#include "src/c_api/measure.h"
#include "src/pixel_error/pixel_error.h"

similis_status similis_mse(const similis_tensor* x, const similis_tensor* y,
    const similis_pixel_error_options* options, const similis_tensor* upstream,
    const similis_tensor* value, const similis_tensor* x_gradient, const similis_tensor* y_gradient,
    const similis_execution* execution) {
  using namespace similis;
  return c_api::measure<mse_into>(pixel_error_internal::kMse.table, options,
      {x, y, upstream, value, x_gradient, y_gradient}, execution);
}

similis_status similis_mae(const similis_tensor* x, const similis_tensor* y,
    const similis_pixel_error_options* options, const similis_tensor* upstream,
    const similis_tensor* value, const similis_tensor* x_gradient, const similis_tensor* y_gradient,
    const similis_execution* execution) {
  using namespace similis;
  return c_api::measure<mae_into>(pixel_error_internal::kMae.table, options,
      {x, y, upstream, value, x_gradient, y_gradient}, execution);
}

similis_status similis_psnr(const similis_tensor* x, const similis_tensor* y,
    const similis_pixel_error_options* options, const similis_tensor* value,
    const similis_execution* execution) {
  return similis::c_api::score<similis::psnr_into>(
      similis::pixel_error_internal::kPsnr.table, options, {x, y, value}, execution);
}
