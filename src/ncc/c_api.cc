// SPDX-License-Identifier: Apache-2.0
// similis_ncc(): ncc_into() for C.
#include "similis/c/ncc.h"
#include "similis/ncc.hpp"
#include "src/c_api/call.h"

similis_status similis_ncc(const similis_tensor* x, const similis_tensor* y,
    const similis_ncc_options* options, const similis_tensor* upstream, const similis_tensor* value,
    const similis_tensor* x_gradient, const similis_tensor* y_gradient,
    const similis_execution* execution) {
  using namespace similis;
  return c_api::call([&] {
    const c_api::Arguments arguments("ncc");
    const similis_ncc_options given = arguments.options(options, SIMILIS_NCC_DEFAULTS);
    arguments.reserved("options.reserved", given.reserved);
    ncc_into(arguments.image("x", x), arguments.image("y", y),
        {.weight = given.weight,
            .upstream = arguments.optional("upstream", upstream),
            .value = arguments.optional("value", value),
            .x_gradient = arguments.optional("x_gradient", x_gradient),
            .y_gradient = arguments.optional("y_gradient", y_gradient)},
        arguments.enumerator("options.reduction", given.reduction, Reduction::per_channel),
        c_api::CallExecution(arguments, execution));
  });
}
