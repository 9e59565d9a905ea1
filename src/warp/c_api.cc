// SPDX-License-Identifier: Apache-2.0
// The functions of warp.hpp for C.
#include "similis/c/warp.h"

#include "similis/warp.hpp"
#include "src/c_api/call.h"

namespace similis {
namespace {

class WarpArguments : public c_api::Arguments {
 public:
  WarpArguments(const char* operation, const similis_warp_options* options)
      : Arguments(operation), given_(Arguments::options(options, SIMILIS_WARP_DEFAULTS)) {}

  bool flag(const char* argument, std::int32_t value) const {
    return enumerator(argument, value, std::int32_t{1}) != 0;
  }
  bool accumulate() const { return flag("options.accumulate", given_.accumulate); }
  bool deterministic() const { return flag("options.deterministic", given_.deterministic); }
  bool align_corners() const { return flag("options.align_corners", given_.align_corners); }

  TensorView affine() const { return optional("options.affine", given_.affine); }
  TensorView displacement() const { return optional("options.displacement", given_.displacement); }

  Extents out_shape() const {
    const std::int32_t rank = enumerator("options.out_rank", given_.out_rank, std::int32_t{3});
    return Extents(std::span<const std::int64_t>(given_.out_shape, static_cast<std::size_t>(rank)));
  }
  std::optional<Coordinates> min_coords() const {
    return coordinates("options.has_min_coords", given_.has_min_coords, given_.min_coords);
  }
  std::optional<Coordinates> max_coords() const {
    return coordinates("options.has_max_coords", given_.has_max_coords, given_.max_coords);
  }
  Outside padding_mode() const {
    return enumerator("options.padding_mode", given_.padding_mode, Outside::reflection);
  }

  SampleOptions sample_options() const {
    return {.affine = affine(),
        .displacement = displacement(),
        .grid = optional("options.grid", given_.grid),
        .grid_affine = optional("options.grid_affine", given_.grid_affine),
        .out_shape = out_shape(),
        .mode = enumerator("options.mode", given_.mode, Interpolation::cubic),
        .padding_mode = padding_mode(),
        .align_corners = align_corners(),
        .prefilter = flag("options.prefilter", given_.prefilter),
        .min_coords = min_coords(),
        .max_coords = max_coords()};
  }
  LabelOptions label_options() const {
    LabelOptions result{.background = given_.background};
    if (flag("options.has_smallest_label", given_.has_smallest_label)) {
      result.smallest_label = given_.smallest_label;
    }
    return result;
  }

 private:
  std::optional<Coordinates> coordinates(
      const char* argument, std::int32_t has, const double (&xyz)[3]) const {
    if (!flag(argument, has)) return std::nullopt;
    return Coordinates{xyz[0], xyz[1], xyz[2]};
  }
  similis_warp_options given_;
};

}  // namespace
}  // namespace similis

using similis::WarpArguments;
using similis::c_api::call;
using similis::c_api::CallExecution;

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
            .max_coords = arguments.max_coords()},
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
            .upstream = arguments.optional("upstream", upstream),
            .affine_gradient = arguments.optional("affine_gradient", affine_gradient)},
        {.displacement = arguments.displacement(),
            .out_shape = arguments.out_shape(),
            .align_corners = arguments.align_corners(),
            .min_coords = arguments.min_coords(),
            .max_coords = arguments.max_coords()},
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

similis_status similis_exponentiate(const similis_tensor* v, int32_t n,
    const similis_warp_options* options, const similis_tensor* output,
    const similis_execution* execution) {
  return call([&] {
    const WarpArguments arguments("exponentiate", options);
    const similis::TensorView given = arguments.image("v", v);
    similis::exponentiate_into(given, arguments.image("output", output), n,
        arguments.align_corners(), CallExecution(arguments, execution));
  });
}

similis_status similis_invert(const similis_tensor* u, int32_t iterations,
    const similis_warp_options* options, const similis_tensor* output,
    const similis_tensor* residual, const similis_execution* execution) {
  return call([&] {
    const WarpArguments arguments("invert", options);
    const similis::TensorView given = arguments.image("u", u);
    similis::invert_into(given, arguments.image("output", output),
        arguments.optional("residual", residual), iterations, arguments.align_corners(),
        CallExecution(arguments, execution));
  });
}

similis_status similis_jacobian_determinant(const similis_tensor* u,
    const similis_warp_options* options, const similis_tensor* determinant,
    const similis_tensor* folds, const similis_execution* execution) {
  return call([&] {
    const WarpArguments arguments("jacobian_determinant", options);
    similis::jacobian_determinant_into(arguments.image("u", u),
        arguments.image("determinant", determinant), arguments.image("folds", folds),
        arguments.align_corners(), arguments.min_coords(), arguments.max_coords(),
        CallExecution(arguments, execution));
  });
}
