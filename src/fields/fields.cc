// SPDX-License-Identifier: Apache-2.0
// Exponentials, inverses and Jacobians: validates, allocates and dispatches. Exponentials are
// iterations of warp's sampling.
#include "similis/fields.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/core/backend.h"
#include "src/core/require.h"
#include "src/core/tensor/dispatch.h"
#include "src/core/validate.h"
#include "src/fields/fields.h"
#include "src/warp/resolve.h"

namespace similis {
namespace {

using namespace fields_internal;
using namespace warp_internal;

// Throws unless there is code for the device; a Vulkan queue asks for one that has none.
void require_runs_on(const char* operation, Device device, const Execution& exec) {
  const Device used = device_of(operation, device, exec);
  require_backend(used, operation, kInvert.runs_on(used.kind));
}

// output = factor·u, exact where factor is a power of two: samples u at its own voxels.
void scale_into(const TensorView& u, double factor, bool align_corners, const TensorView& output,
    const Execution& exec) {
  Pass pass = resolve(
      "scale", as_image(u), {.mode = Interpolation::nearest, .align_corners = align_corners});
  pass.output = as_volumes(as_image(output), 1);
  pass.factor = factor;
  run(pass, exec);
}

// Memory for the steps of an iteration, in f32 or f64: a half type is rounded once, at the end.
Tensor working_copy_of(const TensorView& field, const Execution& exec) {
  return allocate(field.shape, result_dtype(field.dtype), field.device, exec);
}

// output = w + w(x + w), where w is factor·u.
void square_into(const TensorView& u, double factor, bool align_corners, const TensorView& output,
    const Execution& exec) {
  Pass pass = resolve("compose", as_image(u), {.displacement = u, .align_corners = align_corners});
  pass.output = as_volumes(as_image(output), 1);
  pass.addend = as_volumes(as_image(u), 1);
  pass.factor = pass.field_factor = factor;
  run(pass, exec);
}

}  // namespace

Tensor exponentiate(const TensorView& v, int n, bool align_corners, const Execution& exec) {
  require_field("exponentiate", "v", v);
  require_runs_on("exponentiate", v.device, exec);
  Tensor output = allocate(v.shape, v.dtype, v.device, exec);
  exponentiate_into(v, output, n, align_corners, exec);
  return output;
}

void exponentiate_into(const TensorView& v, const TensorView& output, int n, bool align_corners,
    const Execution& exec) {
  require_field("exponentiate", "v", v);
  require(n >= 0 && n <= 32, "exponentiate: n is {}; it must be from 0 to 32", n);
  require(!output.empty(), "exponentiate: output has no data");
  require_result("exponentiate", "output", output, v.shape, v);
  require_runs_on("exponentiate", v.device, exec);
  const double factor = 1 / static_cast<double>(std::int64_t{1} << n);
  if (n == 0) return scale_into(v, factor, align_corners, output, exec);
  const bool is_half = v.dtype == DType::f16 || v.dtype == DType::bf16;
  if (n == 1 && output.data() != v.data() && !is_half) {
    return square_into(v, factor, align_corners, output, exec);
  }
  Tensor u = working_copy_of(v, exec), next;
  if (is_half) {  // a GPU's fast path takes fields of f32, and parts of a field have its bits
    next = working_copy_of(v, exec);
    scale_into(v, factor, align_corners, u, exec);
    for (int step = 0; step < n; ++step) {
      square_into(u, 1, align_corners, next, exec);
      std::swap(u, next);
    }
    return copy(u, output, exec);
  }
  square_into(v, factor, align_corners, u, exec);
  if (n == 1) return copy(u, output, exec);
  if (n > 2) next = working_copy_of(v, exec);
  for (int step = 2; step < n; ++step) {
    square_into(u, 1, align_corners, next, exec);
    std::swap(u, next);
  }
  square_into(u, 1, align_corners, output, exec);
}

Inverse invert(const TensorView& u, int iterations, bool align_corners, double tolerance,
    const Execution& exec) {
  require_field("invert", "u", u);
  require_runs_on("invert", u.device, exec);
  Inverse result{.displacement = allocate(u.shape, u.dtype, u.device, exec),
      .residual = allocate({u.shape[0]}, result_dtype(u.dtype), u.device, exec)};
  invert_into(u, result.displacement, result.residual, iterations, align_corners, tolerance, exec);
  return result;
}

namespace {

// The extent of the axis along which a field is cut, z or y.
std::int64_t rows_of_whole(const TensorView& u, const FieldRows& part) {
  return part.rows.extent == 0 ? u.shape[1] : part.rows.extent;
}

// Refuses a part of a field that does not hold the rows of the result and `beside` rows around
// them, where the whole has them. `result` has the rows of u, if that is whole.
void require_part(const char* operation, const TensorView& u, const char* argument,
    const TensorView& result, const FieldRows& part, std::int64_t beside) {
  require_rows(operation, "rows", part.rows, u.shape[1]);
  if (part.rows.extent == 0) {
    require(part.first == 0, "{}: {} begins at row {}, and u has no rows of a longer field",
        operation, argument, part.first);
    return;
  }
  const std::int64_t first = std::max<std::int64_t>(part.first - beside, 0);
  const std::int64_t end = std::min(part.first + result.shape[1] + beside, part.rows.extent);
  require(part.first >= 0 && part.first <= part.rows.extent - result.shape[1] &&
              first >= part.rows.start && end <= part.rows.start + u.shape[1],
      "{}: {} has {} rows from {} on, and u {} from {} on; it must hold rows {} to {}", operation,
      argument, result.shape[1], part.first, u.shape[1], part.rows.start, first, end);
}

// The shape of a result that has the rows of `given`, if u is a part of a field and these differ.
Extents with_rows_of(Extents shape, const TensorView& given, const FieldRows& part) {
  if (part.rows.extent != 0 && given.shape.rank() == shape.rank()) shape[1] = given.shape[1];
  return shape;
}

}  // namespace

void invert_into(const TensorView& u, const TensorView& output, const TensorView& residual,
    int iterations, bool align_corners, double tolerance, const Execution& exec,
    const FieldRows& part) {
  require_field("invert", "u", u);
  require(iterations >= 0 && iterations <= 10000,
      "invert: iterations is {}; it must be from 0 to 10000", iterations);
  const InvertOptions options{.align_corners = align_corners, .tolerance = tolerance};
  kInvertTable.check(&options);
  require(!output.empty(), "invert: output has no data");
  require_result("invert", "output", output, with_rows_of(u.shape, output, part), u);
  require_part("invert", u, "output", output, part, 0);
  require(output.data() != u.data(), "invert: output has the memory of u; it must have its own");
  require_result("invert", "residual", residual, {u.shape[0]}, u);
  require_runs_on("invert", u.device, exec);
  Tensor wide;
  InversePass pass{.rank = rank_of_field(u),
      .align_corners = align_corners,
      .u = as_field_of_volumes(u, 1),
      .output = as_field_of_volumes(output, 1),
      .residual = residual,
      .iterations = iterations,
      .tolerance = tolerance,
      .extent = rows_of_whole(u, part),
      .start = part.rows.start,
      .first = part.first};
  if (u.dtype != result_dtype(u.dtype)) {
    wide = working_copy_of(u, exec);
    copy(u, wide, exec);
    pass.u = as_field_of_volumes(wide, 1);
  }
  kInvert(u.device, pass, exec);
}

namespace {

// The shape [N,Y,X] or [N,Z,Y,X] of a map over the field's voxels.
Extents voxels_of(const TensorView& field) {
  return Extents(std::span<const std::int64_t>(
      field.shape.begin(), static_cast<std::size_t>(field.shape.rank() - 1)));
}

TensorView as_volumes_of_scalars(TensorView map) {
  if (map.shape.rank() == 4) return map;
  const Extents e = map.shape, s = map.strides;
  map.shape = {e[0], 1, e[1], e[2]};
  map.strides = {s[0], 0, s[1], s[2]};
  return map;
}

}  // namespace

JacobianDeterminant jacobian_determinant(const TensorView& u, bool align_corners,
    const std::optional<Coordinates>& min_coords, const std::optional<Coordinates>& max_coords,
    const Execution& exec) {
  require_field("jacobian_determinant", "u", u);
  require_runs_on("jacobian_determinant", u.device, exec);
  JacobianDeterminant result{.determinant = allocate(voxels_of(u), u.dtype, u.device, exec),
      .folds = allocate({u.shape[0]}, DType::f64, u.device, exec)};
  jacobian_determinant_into(
      u, result.determinant, result.folds, align_corners, min_coords, max_coords, exec);
  return result;
}

void jacobian_determinant_into(const TensorView& u, const TensorView& determinant,
    const TensorView& folds, bool align_corners, const std::optional<Coordinates>& min_coords,
    const std::optional<Coordinates>& max_coords, const Execution& exec, const FieldRows& part) {
  const char* operation = "jacobian_determinant";
  require_field(operation, "u", u);
  JacobianPass pass;
  pass.rank = rank_of_field(u);
  const Extents shape = voxels_of(u);
  set_output_axes(operation,
      Extents(
          std::span<const std::int64_t>(shape.begin() + 1, static_cast<std::size_t>(pass.rank))),
      align_corners, min_coords, max_coords, part.rows, pass.axes);
  pass.first = part.first - part.rows.start;
  for (int a = 0; a < pass.rank; ++a) {
    require(pass.axes[a].out_extent == 1 || pass.axes[a].step != 0,
        "{}: min_coords and max_coords are alike along {}; they must span the field", operation,
        "xyz"[a]);
  }
  require(!determinant.empty() && !folds.empty(), "{}: {} has no data", operation,
      determinant.empty() ? "determinant" : "folds");
  require_result(operation, "determinant", determinant, with_rows_of(shape, determinant, part), u);
  require_part(operation, u, "determinant", determinant, part, 1);
  require_result(operation, "folds", folds, {u.shape[0]}, u);
  require_runs_on(operation, u.device, exec);
  pass.u = as_field_of_volumes(u, 1);
  pass.determinant = as_volumes_of_scalars(determinant);
  pass.folds = folds;
  kJacobian(u.device, pass, exec);
}

}  // namespace similis
