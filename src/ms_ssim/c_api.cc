// SPDX-License-Identifier: Apache-2.0
// similis_ms_ssim(): ms_ssim_into() for C.
#include "similis/c/ms_ssim.h"

#include "similis/ms_ssim.hpp"
#include "src/c_api/call.h"
#include "src/core/require.h"

namespace {

std::vector<double> weights_of(const similis_ms_ssim_options& given) {
  if (given.weights == nullptr) {
    similis::require(given.weight_count == 0,
        "ms_ssim: options.weights is NULL and options.weight_count is {}; it must be 0",
        given.weight_count);
    return similis::MsSsimOptions{}.weights;
  }
  return {given.weights, given.weights + given.weight_count};
}

}  // namespace

similis_status similis_ms_ssim(const similis_tensor* x, const similis_tensor* y,
    const similis_ms_ssim_options* options, const similis_tensor* upstream,
    const similis_tensor* value, const similis_tensor* x_gradient, const similis_tensor* y_gradient,
    const similis_execution* execution) {
  using namespace similis;
  return c_api::call([&] {
    const c_api::Arguments arguments("ms_ssim");
    const similis_ms_ssim_options given = arguments.options(options, SIMILIS_MS_SSIM_DEFAULTS);
    const c_api::CallExecution exec(arguments, execution);
    const TensorView x_view = arguments.image("x", x);
    const MsSsimRequest request = {
        .form = arguments.enumerator("options.form", given.form, SsimRequest::Form::loss),
        .upstream = arguments.optional("upstream", upstream),
        .value = arguments.optional("value", value),
        .x_gradient = arguments.optional("x_gradient", x_gradient),
        .y_gradient = arguments.optional("y_gradient", y_gradient)};
    ms_ssim_into(x_view, arguments.image("y", y), request,
        {
            .data_range = c_api::data_range(given.data_range),
            .window_size = c_api::per_axis(given.window_size, x_view),
            .sigma = c_api::per_axis(given.sigma, x_view),
            .k1 = given.k1,
            .k2 = given.k2,
            .padding = arguments.enumerator("options.padding", given.padding, Padding::renormalize),
            .reduction =
                arguments.enumerator("options.reduction", given.reduction, Reduction::per_channel),
            .weights = weights_of(given),
            .downsample =
                arguments.enumerator("options.downsample", given.downsample, Downsample::piq),
        },
        exec);
  });
}
