// SPDX-License-Identifier: Apache-2.0
// The functions of fields.hpp for C.
#include "similis/c/fields.h"

#include "similis/c/warp.h"
#include "similis/fields.hpp"
#include "src/c_api/measure.h"
#include "src/fields/fields.h"

using namespace similis;
using namespace similis::fields_internal;

similis_status similis_exponentiate(const similis_tensor* v, int32_t n,
    const similis_warp_options* options, const similis_tensor* output,
    const similis_execution* execution) {
  return c_api::call([&] {
    const c_api::Arguments arguments("exponentiate");
    const c_api::CallExecution exec(arguments, execution);
    ExponentiateOptions own;
    c_api::read_options(kExponentiateTable, arguments, options, 3, own, nullptr);
    const TensorView given = arguments.image("v", v);
    exponentiate_into(given, arguments.image("output", output), n, own.align_corners, exec);
  });
}

similis_status similis_invert(const similis_tensor* u, int32_t iterations,
    const similis_warp_options* options, const similis_tensor* output,
    const similis_tensor* residual, const similis_execution* execution) {
  return c_api::call([&] {
    const c_api::Arguments arguments("invert");
    const c_api::CallExecution exec(arguments, execution);
    InvertOptions own;
    FieldPart part;
    c_api::read_options(kInvertTable, arguments, options, 3, own, &part);
    const TensorView given = arguments.image("u", u);
    invert_into(given, arguments.image("output", output), arguments.optional("residual", residual),
        iterations, own.align_corners, own.tolerance, exec, part.for_cpp());
  });
}

similis_status similis_jacobian_determinant(const similis_tensor* u,
    const similis_warp_options* options, const similis_tensor* determinant,
    const similis_tensor* folds, const similis_execution* execution) {
  return c_api::call([&] {
    const c_api::Arguments arguments("jacobian_determinant");
    const c_api::CallExecution exec(arguments, execution);
    JacobianOptions own;
    FieldPart part;
    c_api::read_options(kJacobianTable, arguments, options, 3, own, &part);
    jacobian_determinant_into(arguments.image("u", u), arguments.image("determinant", determinant),
        arguments.image("folds", folds), own.align_corners, own.min_coords, own.max_coords, exec,
        part.for_cpp());
  });
}
