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
  /// Leaves the view empty where the tensor is NULL, as most are: a view is 200 bytes.
  void take(const char* name, const similis_tensor* tensor, TensorView& into) const {
    if (tensor != nullptr) into = arguments.image(name, tensor);
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
    Call<SampleOptions, NotedRequest> call(kSampleTable, options, execution);
    call.take("output", output, call.request.output);
    call.take("upstream", upstream, call.request.upstream);
    call.take("image_gradient", image_gradient, call.request.image_gradient);
    call.take("affine_gradient", affine_gradient, call.request.affine_gradient);
    call.take("grid_gradient", grid_gradient, call.request.grid_gradient);
    call.take("grid_affine_gradient", grid_affine_gradient, call.request.grid_affine_gradient);
    sample_noting(call.arguments.image("image", image), call.request, call.options, call.exec);
  });
}

similis_status similis_compose(const similis_tensor* u, const similis_tensor* v,
    const similis_warp_options* options, const similis_tensor* output,
    const similis_tensor* upstream, const similis_tensor* u_gradient,
    const similis_tensor* v_gradient, const similis_tensor* affine_gradient,
    const similis_execution* execution) {
  return c_api::call([&] {
    Call<ComposeOptions, ComposeRequest> call(kComposeTable, options, execution);
    call.take("output", output, call.request.output);
    call.take("upstream", upstream, call.request.upstream);
    call.take("u_gradient", u_gradient, call.request.u_gradient);
    call.take("v_gradient", v_gradient, call.request.v_gradient);
    call.take("affine_gradient", affine_gradient, call.request.affine_gradient);
    compose_into(call.arguments.image("u", u), call.arguments.image("v", v), call.request,
        call.options, call.exec);
  });
}

similis_status similis_affine_grid(const similis_tensor* affine,
    const similis_warp_options* options, const similis_tensor* output,
    const similis_tensor* upstream, const similis_tensor* affine_gradient,
    const similis_execution* execution) {
  return c_api::call([&] {
    Call<AffineGridOptions, AffineGridRequest> call(kAffineGridTable, options, execution);
    call.take("output", output, call.request.output);
    call.take("upstream", upstream, call.request.upstream);
    call.take("affine_gradient", affine_gradient, call.request.affine_gradient);
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
    LabelRequest request;
    call.take("label", label, request.label);
    call.take("weight", weight, request.weight);
    call.take("upstream", upstream, request.upstream);
    call.take("affine_gradient", affine_gradient, request.affine_gradient);
    call.take("grid_gradient", grid_gradient, request.grid_gradient);
    call.take("grid_affine_gradient", grid_affine_gradient, request.grid_affine_gradient);
    sample_labels_into(
        call.arguments.image("image", image), request, call.options, call.request, call.exec);
  });
}
