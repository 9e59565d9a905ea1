// SPDX-License-Identifier: Apache-2.0
// similis_smooth(): the functions of smooth.hpp for C.
#include "similis/c/smooth.h"

#include "src/c_api/measure.h"
#include "src/smooth/smooth.h"

similis_status similis_smooth(const similis_tensor* x, const similis_smooth_options* options,
    const similis_tensor* output, const similis_execution* execution) {
  using namespace similis;
  return c_api::call([&] {
    const OperationTable& table = smooth_internal::kSmooth.table;
    const c_api::Arguments arguments(table.name);
    const c_api::CallExecution exec(arguments, execution);
    const TensorView given = arguments.image("x", x);
    SmoothOptions own;
    SmoothRequest request;
    c_api::read_options(table, arguments, options, c_api::spatial_axes(given), own, &request);
    request.output = arguments.image("output", output);
    smooth_into(given, request, own, exec);
  });
}
