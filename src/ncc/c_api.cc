// SPDX-License-Identifier: Apache-2.0
// similis_ncc(): ncc_into() for C.
#include "similis/c/ncc.h"

#include "src/c_api/measure.h"
#include "src/ncc/ncc.h"

similis_status similis_ncc(const similis_tensor* x, const similis_tensor* y,
    const similis_ncc_options* options, const similis_tensor* upstream, const similis_tensor* value,
    const similis_tensor* x_gradient, const similis_tensor* y_gradient,
    const similis_execution* execution) {
  return similis::c_api::measure<similis::c_api::by_reduction<similis::ncc_into>>(
      similis::ncc_internal::kNcc.table, options, {x, y, upstream, value, x_gradient, y_gradient},
      execution);
}
