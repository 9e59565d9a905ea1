// SPDX-License-Identifier: Apache-2.0
// similis_mutual_information(), similis_histogram() and
// similis_mutual_information_from_histogram(): the functions of mutual_information.hpp for C.
#include "similis/c/mutual_information.h"

#include "similis/mutual_information.hpp"
#include "src/c_api/call.h"

namespace similis {
namespace {

using c_api::Arguments;

MutualInformationOptions read(
    const Arguments& arguments, const similis_mutual_information_options& given) {
  arguments.reserved("options.reserved", given.reserved);
  return {.num_bins = given.num_bins,
      .kernel = arguments.enumerator("options.kernel", given.kernel, ParzenKernel::delta),
      .sigma_ratio = given.sigma_ratio,
      .range = arguments.enumerator("options.range", given.range, ValueRange::unit_or_common),
      .low = given.low,
      .high = given.high,
      .normalized = arguments.enumerator("options.normalized", given.normalized, true),
      .smooth_nr = given.smooth_nr,
      .smooth_dr = given.smooth_dr,
      .method = arguments.enumerator("options.method", given.method, HistogramMethod::binned),
      .sampling = given.sampling,
      .seed = given.seed,
      .mask = arguments.optional("options.mask", given.mask),
      .reduction =
          arguments.enumerator("options.reduction", given.reduction, Reduction::per_channel)};
}

}  // namespace
}  // namespace similis

similis_status similis_mutual_information(const similis_tensor* x, const similis_tensor* y,
    const similis_mutual_information_options* options, const similis_tensor* upstream,
    const similis_tensor* value, const similis_tensor* x_gradient, const similis_tensor* y_gradient,
    const similis_execution* execution) {
  using namespace similis;
  using Form = MutualInformationRequest::Form;
  return c_api::call([&] {
    const Arguments arguments("mutual_information");
    const auto given = arguments.options(options, SIMILIS_MUTUAL_INFORMATION_DEFAULTS);
    mutual_information_into(arguments.image("x", x), arguments.image("y", y),
        {.form = arguments.enumerator("options.form", given.form, Form::loss),
            .histogram = arguments.optional("options.histogram", given.histogram),
            .upstream = arguments.optional("upstream", upstream),
            .value = arguments.optional("value", value),
            .x_gradient = arguments.optional("x_gradient", x_gradient),
            .y_gradient = arguments.optional("y_gradient", y_gradient)},
        read(arguments, given), c_api::CallExecution(arguments, execution));
  });
}

similis_status similis_histogram(const similis_tensor* x, const similis_tensor* y,
    const similis_mutual_information_options* options, const similis_tensor* histogram,
    const similis_execution* execution) {
  using namespace similis;
  return c_api::call([&] {
    const Arguments arguments("histogram");
    const auto given = arguments.options(options, SIMILIS_MUTUAL_INFORMATION_DEFAULTS);
    histogram_into(arguments.image("x", x), arguments.image("y", y),
        arguments.image("histogram", histogram), read(arguments, given),
        c_api::CallExecution(arguments, execution));
  });
}

similis_status similis_mutual_information_from_histogram(const similis_tensor* histogram,
    const similis_mutual_information_options* options, const similis_tensor* value,
    const similis_execution* execution) {
  using namespace similis;
  return c_api::call([&] {
    const Arguments arguments("mutual_information_from_histogram");
    const auto given = arguments.options(options, SIMILIS_MUTUAL_INFORMATION_DEFAULTS);
    mutual_information_from_histogram_into(arguments.image("histogram", histogram),
        arguments.image("value", value), read(arguments, given),
        c_api::CallExecution(arguments, execution));
  });
}
