// SPDX-License-Identifier: Apache-2.0
// similis_ssim(): ssim_into() for C.
#include "similis/c/ssim.h"
#include "similis/ssim.hpp"
#include "src/c_api/call.h"

similis_status similis_ssim(const similis_tensor* x, const similis_tensor* y,
    const similis_ssim_options* options, const similis_tensor* upstream,
    const similis_tensor* value, const similis_tensor* x_gradient, const similis_tensor* y_gradient,
    const similis_execution* execution) {
  using namespace similis;
  return c_api::call([&] {
    const c_api::Arguments arguments("ssim");
    const similis_ssim_options given = arguments.options(options, SIMILIS_SSIM_DEFAULTS);
    const c_api::CallExecution exec(arguments, execution);
    const TensorView x_view = arguments.image("x", x);
    const SsimRequest request = {
        .form = arguments.enumerator("options.form", given.form, SsimRequest::Form::loss),
        .l1_weight = given.l1_weight,
        .ssim_weight = given.ssim_weight,
        .upstream = arguments.optional("upstream", upstream),
        .value = arguments.optional("value", value),
        .x_gradient = arguments.optional("x_gradient", x_gradient),
        .y_gradient = arguments.optional("y_gradient", y_gradient)};
    ssim_into(x_view, arguments.image("y", y), request,
        {.data_range = c_api::data_range(given.data_range),
            .window_size = c_api::per_axis(given.window_size, x_view),
            .sigma = c_api::per_axis(given.sigma, x_view),
            .k1 = given.k1,
            .k2 = given.k2,
            .padding = arguments.enumerator("options.padding", given.padding, Padding::renormalize),
            .reduction =
                arguments.enumerator("options.reduction", given.reduction, Reduction::per_channel),
            .mask = arguments.optional("options.mask", given.mask),
            .valid_mask = arguments.optional("options.valid_mask", given.valid_mask)},
        exec);
  });
}
