// SPDX-License-Identifier: Apache-2.0
// similis_mse(), similis_mae() and similis_psnr(): the functions of pixel_error.hpp for C.
#include "similis/c/pixel_error.h"

#include "similis/pixel_error.hpp"
#include "src/c_api/call.h"

namespace similis {
namespace {

struct Options {
  std::optional<double> data_range;
  Reduction reduction;
};

Options read_options(const char* operation, const similis_pixel_error_options* options) {
  const c_api::Arguments arguments(operation);
  const auto given = arguments.options(options, SIMILIS_PIXEL_ERROR_DEFAULTS);
  arguments.reserved("options.reserved", given.reserved);
  return {.data_range = c_api::data_range(given.data_range),
      .reduction =
          arguments.enumerator("options.reduction", given.reduction, Reduction::per_channel)};
}

using Into = void (*)(const TensorView& x, const TensorView& y, const PixelErrorRequest& request,
    Reduction reduction, const Execution& exec);

similis_status run(const char* operation, Into into, const similis_tensor* x,
    const similis_tensor* y, const similis_pixel_error_options* options,
    const similis_tensor* upstream, const similis_tensor* value, const similis_tensor* x_gradient,
    const similis_tensor* y_gradient, const similis_execution* execution) {
  return c_api::call([&] {
    const c_api::Arguments arguments(operation);
    into(arguments.image("x", x), arguments.image("y", y),
        {.upstream = arguments.optional("upstream", upstream),
            .value = arguments.optional("value", value),
            .x_gradient = arguments.optional("x_gradient", x_gradient),
            .y_gradient = arguments.optional("y_gradient", y_gradient)},
        read_options(operation, options).reduction, c_api::CallExecution(arguments, execution));
  });
}

}  // namespace
}  // namespace similis

similis_status similis_mse(const similis_tensor* x, const similis_tensor* y,
    const similis_pixel_error_options* options, const similis_tensor* upstream,
    const similis_tensor* value, const similis_tensor* x_gradient, const similis_tensor* y_gradient,
    const similis_execution* execution) {
  return similis::run(
      "mse", similis::mse_into, x, y, options, upstream, value, x_gradient, y_gradient, execution);
}

similis_status similis_mae(const similis_tensor* x, const similis_tensor* y,
    const similis_pixel_error_options* options, const similis_tensor* upstream,
    const similis_tensor* value, const similis_tensor* x_gradient, const similis_tensor* y_gradient,
    const similis_execution* execution) {
  return similis::run(
      "mae", similis::mae_into, x, y, options, upstream, value, x_gradient, y_gradient, execution);
}

similis_status similis_psnr(const similis_tensor* x, const similis_tensor* y,
    const similis_pixel_error_options* options, const similis_tensor* value,
    const similis_execution* execution) {
  return similis::c_api::call([&] {
    const similis::c_api::Arguments arguments("psnr");
    const similis::Options given = similis::read_options("psnr", options);
    similis::psnr_into(arguments.image("x", x), arguments.image("y", y),
        arguments.image("value", value),
        {.data_range = given.data_range, .reduction = given.reduction},
        similis::c_api::CallExecution(arguments, execution));
  });
}
