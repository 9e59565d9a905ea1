// SPDX-License-Identifier: Apache-2.0
// similis_lncc(): lncc_into() for C.
#include "similis/c/lncc.h"

#include "src/c_api/measure.h"
#include "src/lncc/lncc.h"

similis_status similis_lncc(const similis_tensor* x, const similis_tensor* y,
    const similis_lncc_options* options, const similis_tensor* upstream,
    const similis_tensor* value, const similis_tensor* x_gradient, const similis_tensor* y_gradient,
    const similis_execution* execution) {
  return similis::c_api::measure<similis::lncc_into>(similis::lncc_internal::kLncc.table, options,
      {x, y, upstream, value, x_gradient, y_gradient}, execution);
}
