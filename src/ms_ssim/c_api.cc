// SPDX-License-Identifier: Apache-2.0
// similis_ms_ssim(): ms_ssim_into() for C.
#include "similis/c/ms_ssim.h"

#include "src/c_api/measure.h"
#include "src/ms_ssim/ms_ssim.h"

similis_status similis_ms_ssim(const similis_tensor* x, const similis_tensor* y,
    const similis_ms_ssim_options* options, const similis_tensor* upstream,
    const similis_tensor* value, const similis_tensor* x_gradient, const similis_tensor* y_gradient,
    const similis_execution* execution) {
  return similis::c_api::measure<similis::ms_ssim_into>(similis::ms_ssim_internal::kMsSsim.table,
      options, {x, y, upstream, value, x_gradient, y_gradient}, execution);
}
