// SPDX-License-Identifier: Apache-2.0
// similis_lncc(): lncc_into() for C.
#include "similis/c/lncc.h"
#include "similis/lncc.hpp"
#include "src/c_api/call.h"

similis_status similis_lncc(const similis_tensor* x, const similis_tensor* y,
    const similis_lncc_options* options, const similis_tensor* upstream,
    const similis_tensor* value, const similis_tensor* x_gradient, const similis_tensor* y_gradient,
    const similis_execution* execution) {
  using namespace similis;
  return c_api::call([&] {
    const c_api::Arguments arguments("lncc");
    const similis_lncc_options given = arguments.options(options, SIMILIS_LNCC_DEFAULTS);
    const c_api::CallExecution exec(arguments, execution);
    const TensorView x_view = arguments.image("x", x);
    enum class Switch : std::uint8_t { off, on };
    const LnccRequest request = {.weight = given.weight,
        .upstream = arguments.optional("upstream", upstream),
        .value = arguments.optional("value", value),
        .x_gradient = arguments.optional("x_gradient", x_gradient),
        .y_gradient = arguments.optional("y_gradient", y_gradient)};
    lncc_into(x_view, arguments.image("y", y), request,
        {.window_size = c_api::per_axis(given.window_size, x_view),
            .window = arguments.enumerator("options.window", given.window, WindowShape::gaussian),
            .sigma = c_api::per_axis(given.sigma, x_view),
            .padding = arguments.enumerator("options.padding", given.padding, Padding::renormalize),
            .reduction =
                arguments.enumerator("options.reduction", given.reduction, Reduction::per_channel),
            .smooth_nr = given.smooth_nr,
            .smooth_dr = given.smooth_dr,
            .is_signed = arguments.enumerator("options.is_signed", given.is_signed, Switch::on) ==
                         Switch::on,
            .gradient =
                arguments.enumerator("options.gradient", given.gradient, LnccGradient::ants),
            .mask = arguments.optional("options.mask", given.mask),
            .valid_mask = arguments.optional("options.valid_mask", given.valid_mask)},
        exec);
  });
}
