// SPDX-License-Identifier: Apache-2.0
// Sampling and composing: what is allocated, and which backend runs. resolve.cc refuses.
#include "similis/warp.hpp"

#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "src/core/backend.h"
#include "src/core/require.h"
#include "src/core/tensor/dispatch.h"
#include "src/core/validate.h"
#include "src/warp/resolve.h"
#include "src/warp/warp.h"

namespace similis {
namespace warp_internal {

void run(const Pass& pass, const Execution& exec) { kSample(pass.image.device, pass, exec); }

void copy(const TensorView& from, const TensorView& to, const Execution& exec) {
  kCopy(from.device, from, to, exec);
}

}  // namespace warp_internal

namespace {

using namespace warp_internal;

// Throws unless there is code for the device; a Vulkan queue asks for one that has none.
void require_runs_on(const char* operation, Device device, const Execution& exec) {
  const Device used = device_of(operation, device, exec);
  require_backend(used, operation, kSample.runs_on(used.kind));
}

Extents output_shape(const Pass& pass) {
  const Axis* a = pass.axes;
  if (pass.rank == 2) return {pass.batch, pass.channels, a[1].out_extent, a[0].out_extent};
  return {pass.batch, pass.channels, a[2].out_extent, a[1].out_extent, a[0].out_extent};
}

Extents field_shape(const Pass& pass) {
  const Axis* a = pass.axes;
  if (pass.rank == 2) return {pass.batch, a[1].out_extent, a[0].out_extent, 2};
  return {pass.batch, a[2].out_extent, a[1].out_extent, a[0].out_extent, 3};
}

Tensor like(const TensorView& operand, const Execution& exec) {
  return allocate(operand.shape, operand.dtype, operand.device, exec);
}

// The image as B-spline coefficients, in the type of the arithmetic.
Tensor coefficients_of(const TensorView& image, int rank, const Execution& exec) {
  Tensor result = allocate(image.shape, result_dtype(image.dtype), image.device, exec);
  copy(image, result, exec);
  const TensorView volumes = as_volumes(result, image.shape[0]);
  kSplineFilter(image.device, volumes, rank, Filter::forward, exec);
  return result;
}

// The pass of a cubic call on an image of samples: on coefficients, and its gradient led back.
void run_prefiltered(
    Pass pass, const TensorView& image, const TensorView& gradient, const Execution& exec) {
  const Tensor coefficients = coefficients_of(image, pass.rank, exec);
  pass.image = as_volumes(coefficients, pass.batch);
  Tensor of_coefficients;
  if (!gradient.empty()) {
    of_coefficients = like(coefficients, exec);
    pass.image_gradient = as_volumes(of_coefficients, 1);
  }
  run(pass, exec);
  if (gradient.empty()) return;
  kSplineFilter(image.device, pass.image_gradient, pass.rank, Filter::transposed, exec);
  copy(of_coefficients, gradient, exec);
}

// The image is read all over while results are written.
void require_own_memory(const char* operation, const char* argument, const TensorView& result,
    const TensorView& image) {
  require(result.empty() || result.data() != image.data(),
      "{}: {} has the memory of what is sampled; it must have its own", operation, argument);
}

void require_sample_request(const Pass& pass, const TensorView& image, const SampleRequest& request,
    const SampleOptions& options) {
  const char* operation = pass.operation;
  const Extents shape = output_shape(pass);
  require_result(operation, "output", request.output, shape, image);
  require_own_memory(operation, "output", request.output, image);
  const bool adds_to_gradient = request.accumulate && request.output.empty();
  require(!adds_to_gradient || !request.grid_gradient.empty(),
      "{}: accumulate is set, and output is empty", operation);
  require(!adds_to_gradient || image.device.kind != DeviceKind::cpu,
      "{}: accumulate is set, and output is empty; grid_gradient is added to on GPUs alone",
      operation);
  const bool with_gradient = !request.image_gradient.empty() || !request.affine_gradient.empty() ||
                             !request.grid_gradient.empty() ||
                             !request.grid_affine_gradient.empty();
  require_upstream(operation, request.upstream, shape, image, with_gradient);
  require_operand_gradient(operation, "image_gradient", request.image_gradient, "image", image);
  require_matrix_gradient(
      operation, "affine_gradient", request.affine_gradient, "affine", options.affine);
  require_operand_gradient(operation, "grid_gradient", request.grid_gradient,
      "displacement or grid", options.grid.empty() ? options.displacement : options.grid);
  require_matrix_gradient(operation, "grid_affine_gradient", request.grid_affine_gradient,
      "grid_affine", options.grid_affine);
}

void require_notes(
    const Pass& pass, const char* argument, const TensorView& notes, const TensorView& image) {
  if (notes.empty()) return;
  const Extents shape = {pass.axes[pass.rank - 1].out_extent + 1, 2};
  require_result(pass.operation, argument, notes, shape, image);
  require(notes.dtype == DType::f32 && notes.strides == dense_strides(shape),
      "{}: {} is {}; it must be dense float32", pass.operation, argument, notes.dtype);
}

void run_sample(const char* operation, const TensorView& image, const SampleRequest& request,
    const SampleOptions& options, const Execution& exec, const NotedRequest* notes = nullptr) {
  require_image(operation, "image", image);
  Pass pass = resolve(operation, image, options);
  require_sample_request(pass, image, request, options);
  if (notes != nullptr) {
    require_notes(pass, "elsewhere", notes->elsewhere, image);
    require_notes(pass, "noted", notes->noted, image);
    pass.elsewhere = notes->elsewhere;
    pass.noted = notes->noted;
    pass.reached = notes->reached;
    require(
        pass.reached.end == 0 || (!pass.elsewhere.empty() && pass.reached.first < pass.reached.end),
        "{}: reached is from {} to {}; the end must be above the first, and elsewhere be given",
        operation, pass.reached.first, pass.reached.end);
  }
  require_runs_on(operation, image.device, exec);
  pass.output = as_volumes(request.output, 1);
  if (request.accumulate) pass.addend = pass.output;
  pass.adds_to_field_gradient = request.accumulate && request.output.empty();
  pass.upstream = as_volumes(request.upstream, 1);
  pass.image_gradient = as_volumes(request.image_gradient, 1);
  pass.field_gradient = as_field_of_volumes(request.grid_gradient, 1);
  pass.affine_gradient = request.affine_gradient;
  pass.grid_affine_gradient = request.grid_affine_gradient;
  pass.deterministic = request.deterministic;
  if (pass.mode == Interpolation::cubic && options.prefilter) {
    return run_prefiltered(pass, image, request.image_gradient, exec);
  }
  run(pass, exec);
}

SampleOptions sample_options_of(const TensorView& v, const ComposeOptions& options) {
  return {.affine = options.affine,
      .displacement = v,
      .padding_mode = options.padding_mode,
      .align_corners = options.align_corners,
      .min_coords = options.min_coords,
      .max_coords = options.max_coords,
      .rows = options.rows,
      .image_rows = options.image_rows,
      .cells = options.cells};
}

Pass compose_pass(const TensorView& u, const TensorView& v, const ComposeOptions& options) {
  const char* operation = "compose";
  require_field(operation, "u", u);
  require_field(operation, "v", v);
  require(u.shape.rank() == v.shape.rank(), "{}: v has shape {}; u is {}D", operation, v.shape,
      rank_of_field(u));
  kComposeTable.check(&options);
  return resolve(operation, as_image(u), sample_options_of(v, options));
}

}  // namespace

Tensor sample(const TensorView& image, const SampleOptions& options, const Execution& exec) {
  require_image("sample", "image", image);
  kSampleTable.check(&options);
  const Pass pass = resolve("sample", image, options);
  require_runs_on("sample", image.device, exec);
  Tensor output = allocate(output_shape(pass), image.dtype, image.device, exec);
  sample_into(image, {.output = output}, options, exec);
  return output;
}

SampleGradients sample_backward(const TensorView& image, const TensorView& upstream,
    const SampleGradientOf& wrt, const SampleOptions& options, bool deterministic,
    const Execution& exec) {
  require_image("sample", "image", image);
  const TensorView& field = options.grid.empty() ? options.displacement : options.grid;
  SampleGradients result;
  if (wrt.image) result.image = like(image, exec);
  if (wrt.affine && !options.affine.empty()) result.affine = like(options.affine, exec);
  if (wrt.grid && !field.empty()) result.grid = like(field, exec);
  if (wrt.grid_affine && !options.grid_affine.empty()) {
    result.grid_affine = like(options.grid_affine, exec);
  }
  sample_into(image,
      {.upstream = upstream,
          .image_gradient = result.image,
          .affine_gradient = result.affine,
          .grid_gradient = result.grid,
          .grid_affine_gradient = result.grid_affine,
          .deterministic = deterministic},
      options, exec);
  return result;
}

void warp_internal::sample_noting(const TensorView& image, const NotedRequest& request,
    const SampleOptions& options, const Execution& exec) {
  kSampleTable.check(&options);
  run_sample("sample", image, request, options, exec, &request);
}

void sample_into(const TensorView& image, const SampleRequest& request,
    const SampleOptions& options, const Execution& exec) {
  kSampleTable.check(&options);
  run_sample("sample", image, request, options, exec);
}

Tensor compose(const TensorView& u, const TensorView& v, const ComposeOptions& options,
    const Execution& exec) {
  const Pass pass = compose_pass(u, v, options);
  require_runs_on("compose", u.device, exec);
  Tensor output = allocate(field_shape(pass), u.dtype, u.device, exec);
  compose_into(u, v, {.output = output}, options, exec);
  return output;
}

void compose_into(const TensorView& u, const TensorView& v, const ComposeRequest& request,
    const ComposeOptions& options, const Execution& exec) {
  const Extents shape = field_shape(compose_pass(u, v, options));
  require_result("compose", "output", request.output, shape, u);
  require_upstream("compose", request.upstream, shape, u, false);
  require_operand_gradient("compose", "u_gradient", request.u_gradient, "u", u);
  require_operand_gradient("compose", "v_gradient", request.v_gradient, "v", v);
  run_sample("compose", as_image(u),
      {.output = as_image(request.output),
          .accumulate = request.accumulate,
          .upstream = as_image(request.upstream),
          .image_gradient = as_image(request.u_gradient),
          .affine_gradient = request.affine_gradient,
          .grid_gradient = request.v_gradient,
          .deterministic = request.deterministic},
      sample_options_of(v, options), exec);
}

namespace {

// The pass of affine_grid: no image, and fields for output and upstream.
Pass affine_grid_pass(const TensorView& affine, const AffineGridOptions& options) {
  const char* operation = "affine_grid";
  require(!affine.empty(), "{}: affine has no data", operation);
  require(affine.shape.rank() == 3 && (affine.shape[1] == 2 || affine.shape[1] == 3),
      "{}: affine has shape {}; it must be [N, 2, 3] or [N, 3, 4]", operation, affine.shape);
  const int rank = static_cast<int>(affine.shape[1]);
  require(!options.displacement.empty() || options.out_shape.rank() == rank,
      "{}: out_shape is {}; without a displacement it must have {} extents", operation,
      options.out_shape, rank);
  // One voxel stands in for the image that there is not.
  static constexpr Extents kVoxel2D = {1, 1, 1, 1}, kVoxel3D = {1, 1, 1, 1, 1};
  const Extents& one = rank == 2 ? kVoxel2D : kVoxel3D;
  const TensorView voxel = affine.reshaped(one, dense_strides(one));
  Pass pass = resolve(operation, voxel,
      {.affine = affine,
          .displacement = options.displacement,
          .out_shape = options.out_shape,
          .align_corners = options.align_corners,
          .min_coords = options.min_coords,
          .max_coords = options.max_coords,
          .rows = options.rows});
  return pass;
}

}  // namespace

Tensor affine_grid(
    const TensorView& affine, const AffineGridOptions& options, const Execution& exec) {
  const Pass pass = affine_grid_pass(affine, options);
  require_runs_on("affine_grid", affine.device, exec);
  const TensorView& u = options.displacement;
  Tensor output =
      allocate(field_shape(pass), u.empty() ? affine.dtype : u.dtype, affine.device, exec);
  affine_grid_into(affine, {.output = output}, options, exec);
  return output;
}

void affine_grid_into(const TensorView& affine, const AffineGridRequest& request,
    const AffineGridOptions& options, const Execution& exec) {
  Pass pass = affine_grid_pass(affine, options);
  const Extents shape = field_shape(pass);
  require_result("affine_grid", "output", request.output, shape, affine);
  require(!request.accumulate || !request.output.empty(),
      "affine_grid: accumulate is set, and output is empty");
  require_upstream(
      "affine_grid", request.upstream, shape, affine, !request.affine_gradient.empty());
  require_matrix_gradient(
      "affine_grid", "affine_gradient", request.affine_gradient, "affine", affine);
  require_runs_on("affine_grid", affine.device, exec);
  pass.output = as_field_of_volumes(request.output, 1);
  if (request.accumulate) pass.addend = pass.output;
  pass.upstream = as_field_of_volumes(request.upstream, 1);
  pass.affine_gradient = request.affine_gradient;
  kAffineGrid(affine.device, pass, exec);
}

namespace {

// An integer's cast would wrap around.
void require_background(DType dtype, double background) {
  if (is_floating_point(dtype)) return;
  const auto [least, largest] = visit_dtype(dtype, [&]<class T>(std::type_identity<T>) {
    using Limits = std::numeric_limits<T>;
    const double most = dtype == DType::boolean ? 1 : static_cast<double>(load(Limits::max()));
    return std::pair(static_cast<double>(load(Limits::lowest())), most);
  });
  require(background >= least && background <= largest && background == std::floor(background),
      "sample_labels: background is {}; it must be a whole number from {} to {}, as image is {}",
      background, least, largest, dtype);
}

Pass label_pass(const TensorView& image, const SampleOptions& options, const LabelOptions& labels) {
  require_image("sample_labels", "image", image, true);
  kSampleLabelsTable.check(&options);
  require(image.device.kind == DeviceKind::cpu || !is_cpu_only(image.dtype),
      "sample_labels: image is {} on {}; such labels must be on the CPU, or be converted",
      image.dtype, image.device);
  require_background(image.dtype, labels.background);
  Pass pass = resolve("sample_labels", image, options);
  pass.form = Form::labels;
  pass.mode = Interpolation::linear;
  pass.background = labels.background;
  pass.smallest_label = labels.smallest_label.value_or(-std::numeric_limits<double>::infinity());
  return pass;
}

}  // namespace

Labels sample_labels(const TensorView& image, const SampleOptions& options,
    const LabelOptions& labels, const Execution& exec) {
  const Pass pass = label_pass(image, options, labels);
  require_runs_on("sample_labels", image.device, exec);
  Labels result;
  result.label = allocate(output_shape(pass), image.dtype, image.device, exec);
  const DType weight_dtype = image.dtype == DType::f64 ? DType::f64 : DType::f32;
  result.weight = allocate(output_shape(pass), weight_dtype, image.device, exec);
  sample_labels_into(
      image, {.label = result.label, .weight = result.weight}, options, labels, exec);
  return result;
}

void sample_labels_into(const TensorView& image, const LabelRequest& request,
    const SampleOptions& options, const LabelOptions& labels, const Execution& exec) {
  const char* operation = "sample_labels";
  Pass pass = label_pass(image, options, labels);
  const Extents shape = output_shape(pass);
  if (!request.label.empty()) {
    require(request.label.dtype == image.dtype, "{}: label is {}; it must be {} as image is",
        operation, request.label.dtype, image.dtype);
    TensorView as_floats = request.label;  // what a result must be, but for the dtype
    as_floats.dtype = DType::f32;
    require_result(operation, "label", as_floats, shape, image);
    require_own_memory(operation, "label", request.label, image);
  }
  require_result(operation, "weight", request.weight, shape, image);
  const bool with_gradient = !request.affine_gradient.empty() || !request.grid_gradient.empty() ||
                             !request.grid_affine_gradient.empty();
  require_upstream(operation, request.upstream, shape, image, with_gradient);
  require_matrix_gradient(
      operation, "affine_gradient", request.affine_gradient, "affine", options.affine);
  require_operand_gradient(operation, "grid_gradient", request.grid_gradient,
      "displacement or grid", options.grid.empty() ? options.displacement : options.grid);
  require_matrix_gradient(operation, "grid_affine_gradient", request.grid_affine_gradient,
      "grid_affine", options.grid_affine);
  require_runs_on(operation, image.device, exec);
  pass.output = as_volumes(request.label, 1);
  pass.weight = as_volumes(request.weight, 1);
  pass.upstream = as_volumes(request.upstream, 1);
  pass.field_gradient = as_field_of_volumes(request.grid_gradient, 1);
  pass.affine_gradient = request.affine_gradient;
  pass.grid_affine_gradient = request.grid_affine_gradient;
  run(pass, exec);
}

}  // namespace similis
