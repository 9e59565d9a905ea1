// SPDX-License-Identifier: Apache-2.0
// The functions of fields.hpp for C.
#include "similis/c/fields.h"

#include "similis/fields.hpp"
#include "src/warp/c_arguments.h"

using similis::c_api::call;
using similis::c_api::CallExecution;
using similis::warp_internal::WarpArguments;

similis_status similis_exponentiate(const similis_tensor* v, int32_t n,
    const similis_warp_options* options, const similis_tensor* output,
    const similis_execution* execution) {
  return call([&] {
    const WarpArguments arguments("exponentiate", options);
    const similis::TensorView given = arguments.image("v", v);
    similis::exponentiate_into(given, arguments.image("output", output), n,
        arguments.align_corners(), CallExecution(arguments, execution));
  });
}

similis_status similis_invert(const similis_tensor* u, int32_t iterations,
    const similis_warp_options* options, const similis_tensor* output,
    const similis_tensor* residual, const similis_execution* execution) {
  return call([&] {
    const WarpArguments arguments("invert", options);
    const similis::TensorView given = arguments.image("u", u);
    similis::invert_into(given, arguments.image("output", output),
        arguments.optional("residual", residual), iterations, arguments.align_corners(),
        arguments.tolerance(), CallExecution(arguments, execution),
        {arguments.image_rows(), arguments.rows().start});
  });
}

similis_status similis_jacobian_determinant(const similis_tensor* u,
    const similis_warp_options* options, const similis_tensor* determinant,
    const similis_tensor* folds, const similis_execution* execution) {
  return call([&] {
    const WarpArguments arguments("jacobian_determinant", options);
    similis::jacobian_determinant_into(arguments.image("u", u),
        arguments.image("determinant", determinant), arguments.image("folds", folds),
        arguments.align_corners(), arguments.min_coords(), arguments.max_coords(),
        CallExecution(arguments, execution), {arguments.image_rows(), arguments.rows().start});
  });
}
