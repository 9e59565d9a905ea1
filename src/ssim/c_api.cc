// SPDX-License-Identifier: Apache-2.0
// similis_ssim(): ssim_into() for C.
#include "similis/c/ssim.h"

#include "src/c_api/measure.h"
#include "src/ssim/ssim.h"

similis_status similis_ssim(const similis_tensor* x, const similis_tensor* y,
    const similis_ssim_options* options, const similis_tensor* upstream,
    const similis_tensor* value, const similis_tensor* x_gradient, const similis_tensor* y_gradient,
    const similis_execution* execution) {
  return similis::c_api::measure<similis::ssim_into>(similis::ssim_internal::kSsim.table, options,
      {x, y, upstream, value, x_gradient, y_gradient}, execution);
}
