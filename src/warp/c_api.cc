// SPDX-License-Identifier: Apache-2.0
// The functions of warp.hpp for C.
#include "similis/c/warp.h"

#include "similis/warp.hpp"
#include "src/warp/c_arguments.h"

using similis::c_api::call;
using similis::c_api::CallExecution;
using similis::warp_internal::WarpArguments;

similis_status similis_sample(const similis_tensor* image, const similis_warp_options* options,
    const similis_tensor* output, const similis_tensor* upstream,
    const similis_tensor* image_gradient, const similis_tensor* affine_gradient,
    const similis_tensor* grid_gradient, const similis_tensor* grid_affine_gradient,
    const similis_execution* execution) {
  return call([&] {
    const WarpArguments arguments("sample", options);
    similis::sample_into(arguments.image("image", image),
        {.output = arguments.optional("output", output),
            .accumulate = arguments.accumulate(),
            .upstream = arguments.optional("upstream", upstream),
            .image_gradient = arguments.optional("image_gradient", image_gradient),
            .affine_gradient = arguments.optional("affine_gradient", affine_gradient),
            .grid_gradient = arguments.optional("grid_gradient", grid_gradient),
            .grid_affine_gradient =
                arguments.optional("grid_affine_gradient", grid_affine_gradient),
            .deterministic = arguments.deterministic()},
        arguments.sample_options(), CallExecution(arguments, execution));
  });
}

similis_status similis_compose(const similis_tensor* u, const similis_tensor* v,
    const similis_warp_options* options, const similis_tensor* output,
    const similis_tensor* upstream, const similis_tensor* u_gradient,
    const similis_tensor* v_gradient, const similis_tensor* affine_gradient,
    const similis_execution* execution) {
  return call([&] {
    const WarpArguments arguments("compose", options);
    similis::compose_into(arguments.image("u", u), arguments.image("v", v),
        {.output = arguments.optional("output", output),
            .accumulate = arguments.accumulate(),
            .upstream = arguments.optional("upstream", upstream),
            .u_gradient = arguments.optional("u_gradient", u_gradient),
            .v_gradient = arguments.optional("v_gradient", v_gradient),
            .affine_gradient = arguments.optional("affine_gradient", affine_gradient),
            .deterministic = arguments.deterministic()},
        {.affine = arguments.affine(),
            .padding_mode = arguments.padding_mode(),
            .align_corners = arguments.align_corners(),
            .min_coords = arguments.min_coords(),
            .max_coords = arguments.max_coords(),
            .rows = arguments.rows(),
            .image_rows = arguments.image_rows(),
            .cells = arguments.cells()},
        CallExecution(arguments, execution));
  });
}

similis_status similis_affine_grid(const similis_tensor* affine,
    const similis_warp_options* options, const similis_tensor* output,
    const similis_tensor* upstream, const similis_tensor* affine_gradient,
    const similis_execution* execution) {
  return call([&] {
    const WarpArguments arguments("affine_grid", options);
    similis::affine_grid_into(arguments.image("affine", affine),
        {.output = arguments.optional("output", output),
            .accumulate = arguments.accumulate(),
            .upstream = arguments.optional("upstream", upstream),
            .affine_gradient = arguments.optional("affine_gradient", affine_gradient)},
        {.displacement = arguments.displacement(),
            .out_shape = arguments.out_shape(),
            .align_corners = arguments.align_corners(),
            .min_coords = arguments.min_coords(),
            .max_coords = arguments.max_coords(),
            .rows = arguments.rows()},
        CallExecution(arguments, execution));
  });
}

similis_status similis_sample_labels(const similis_tensor* image,
    const similis_warp_options* options, const similis_tensor* label, const similis_tensor* weight,
    const similis_tensor* upstream, const similis_tensor* affine_gradient,
    const similis_tensor* grid_gradient, const similis_tensor* grid_affine_gradient,
    const similis_execution* execution) {
  return call([&] {
    const WarpArguments arguments("sample_labels", options);
    similis::sample_labels_into(arguments.image("image", image),
        {.label = arguments.optional("label", label),
            .weight = arguments.optional("weight", weight),
            .upstream = arguments.optional("upstream", upstream),
            .affine_gradient = arguments.optional("affine_gradient", affine_gradient),
            .grid_gradient = arguments.optional("grid_gradient", grid_gradient),
            .grid_affine_gradient =
                arguments.optional("grid_affine_gradient", grid_affine_gradient)},
        arguments.sample_options(), arguments.label_options(), CallExecution(arguments, execution));
  });
}
