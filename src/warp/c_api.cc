// SPDX-License-Identifier: Apache-2.0
// The functions of warp.hpp for C.
#include "similis/c/warp.h"

#include "similis/warp.hpp"
#include "src/c_api/measure.h"
#include "src/warp/warp.h"

using namespace similis;
using namespace similis::warp_internal;

namespace {

// A call's arguments, its options read by the operation's table.
template <class Options, class Request> struct Call {
  Call(const OperationTable& operation, const similis_warp_options* given,
      const similis_execution* execution)
      : arguments(operation.name), exec(arguments, execution) {
    c_api::read_options(operation, arguments, given, 3, options, &request);
  }
  TensorView optional(const char* name, const similis_tensor* tensor) const {
    return arguments.optional(name, tensor);
  }

  c_api::Arguments arguments;
  c_api::CallExecution exec;
  Options options;
  Request request;
};

}  // namespace

similis_status similis_sample(const similis_tensor* image, const similis_warp_options* options,
    const similis_tensor* output, const similis_tensor* upstream,
    const similis_tensor* image_gradient, const similis_tensor* affine_gradient,
    const similis_tensor* grid_gradient, const similis_tensor* grid_affine_gradient,
    const similis_execution* execution) {
  return c_api::call([&] {
    Call<SampleOptions, SampleRequest> call(kSampleTable, options, execution);
    SampleRequest& request = call.request;
    request.output = call.optional("output", output);
    request.upstream = call.optional("upstream", upstream);
    request.image_gradient = call.optional("image_gradient", image_gradient);
    request.affine_gradient = call.optional("affine_gradient", affine_gradient);
    request.grid_gradient = call.optional("grid_gradient", grid_gradient);
    request.grid_affine_gradient = call.optional("grid_affine_gradient", grid_affine_gradient);
    sample_into(call.arguments.image("image", image), request, call.options, call.exec);
  });
}

similis_status similis_compose(const similis_tensor* u, const similis_tensor* v,
    const similis_warp_options* options, const similis_tensor* output,
    const similis_tensor* upstream, const similis_tensor* u_gradient,
    const similis_tensor* v_gradient, const similis_tensor* affine_gradient,
    const similis_execution* execution) {
  return c_api::call([&] {
    Call<ComposeOptions, ComposeRequest> call(kComposeTable, options, execution);
    ComposeRequest& request = call.request;
    request.output = call.optional("output", output);
    request.upstream = call.optional("upstream", upstream);
    request.u_gradient = call.optional("u_gradient", u_gradient);
    request.v_gradient = call.optional("v_gradient", v_gradient);
    request.affine_gradient = call.optional("affine_gradient", affine_gradient);
    compose_into(call.arguments.image("u", u), call.arguments.image("v", v), request, call.options,
        call.exec);
  });
}

similis_status similis_affine_grid(const similis_tensor* affine,
    const similis_warp_options* options, const similis_tensor* output,
    const similis_tensor* upstream, const similis_tensor* affine_gradient,
    const similis_execution* execution) {
  return c_api::call([&] {
    Call<AffineGridOptions, AffineGridRequest> call(kAffineGridTable, options, execution);
    call.request.output = call.optional("output", output);
    call.request.upstream = call.optional("upstream", upstream);
    call.request.affine_gradient = call.optional("affine_gradient", affine_gradient);
    affine_grid_into(call.arguments.image("affine", affine), call.request, call.options, call.exec);
  });
}

similis_status similis_sample_labels(const similis_tensor* image,
    const similis_warp_options* options, const similis_tensor* label, const similis_tensor* weight,
    const similis_tensor* upstream, const similis_tensor* affine_gradient,
    const similis_tensor* grid_gradient, const similis_tensor* grid_affine_gradient,
    const similis_execution* execution) {
  return c_api::call([&] {
    const Call<SampleOptions, LabelOptions> call(kSampleLabelsTable, options, execution);
    sample_labels_into(call.arguments.image("image", image),
        {.label = call.optional("label", label),
            .weight = call.optional("weight", weight),
            .upstream = call.optional("upstream", upstream),
            .affine_gradient = call.optional("affine_gradient", affine_gradient),
            .grid_gradient = call.optional("grid_gradient", grid_gradient),
            .grid_affine_gradient = call.optional("grid_affine_gradient", grid_affine_gradient)},
        call.options, call.request, call.exec);
  });
}
