// SPDX-License-Identifier: Apache-2.0
#include "src/warp/resolve.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/core/require.h"
#include "src/core/tensor/dispatch.h"
#include "src/core/validate.h"

namespace similis::warp_internal {
namespace {

// Voxel numbers are 32-bit integers along one axis.
constexpr std::int64_t kLongestAxis = std::int64_t{1} << 30;

void require_extents(const char* operation, const char* argument, const TensorView& tensor) {
  for (const std::int64_t extent : tensor.shape) {
    require(extent >= 1 && extent <= kLongestAxis,
        "{}: {} has shape {}; every extent must be from 1 to {}", operation, argument, tensor.shape,
        kLongestAxis);
  }
}

void require_float(const char* operation, const char* argument, const TensorView& tensor) {
  require(is_floating_point(tensor.dtype),
      "{}: {} is {}; it must be float16, bfloat16, float32 or float64", operation, argument,
      tensor.dtype);
}

void require_same_device(const char* operation, const char* argument, const TensorView& tensor,
    const TensorView& image) {
  require(tensor.device == image.device,
      "{}: {} is on {}; it must be on {} as the first operand is", operation, argument,
      tensor.device, image.device);
}

// [N,d,d+extra].
void require_matrix(const char* operation, const char* argument, const TensorView& matrix, int rank,
    int extra, const TensorView& image) {
  if (matrix.empty()) return;
  const Extents& s = matrix.shape;
  require(s.rank() == 3 && s[0] >= 1 && s[1] == rank && s[2] == rank + extra,
      "{}: {} has shape {}; it must be [N, {}, {}] for {}D", operation, argument, s, rank,
      rank + extra, rank);
  require_float(operation, argument, matrix);
  require_same_device(operation, argument, matrix, image);
}

// The larger of both, of which one may be 1.
std::int64_t broadcast(
    const char* operation, const char* argument, std::int64_t batch, const TensorView& operand) {
  if (operand.empty()) return batch;
  const std::int64_t other = operand.shape[0];
  require(other == batch || other == 1 || batch == 1,
      "{}: {} has N = {}, and another operand {}; they must be alike, or one of them 1", operation,
      argument, other, batch);
  return std::max(batch, other);
}

TensorView shared(TensorView operand, std::int64_t batch) {
  if (!operand.empty() && operand.shape[0] < batch) operand.strides[0] = 0;
  return operand;
}

// True if a number is an integer except for rounding in f64.
bool is_nearly_integer(double value) { return std::abs(value - std::rint(value)) < 1e-9; }

double component(const Coordinates& coordinates, int axis) {
  return axis == 0 ? coordinates.x : axis == 1 ? coordinates.y : coordinates.z;
}

void set_output_axis(double low, double high, std::int64_t extent, bool align_corners, Axis* axis) {
  axis->out_extent = extent;
  if (extent == 1) {
    axis->origin = (low + high) / 2;
    axis->step = 0;
    axis->first = 0;
    return;
  }
  axis->origin = low;
  axis->step = (high - low) / static_cast<double>(extent - 1);
  axis->first = 0;
  if (!(axis->step > 0)) return;
  // A range of a whole grid's voxels takes that grid's numbers, and so its bits.
  const double voxels = align_corners ? 2 / axis->step + 1 : 2 / axis->step;
  const double first = align_corners ? (low + 1) / axis->step : (low + 1) / axis->step - 0.5;
  if (!is_nearly_integer(voxels) || !is_nearly_integer(first)) return;
  if (first < -0.5 || first + static_cast<double>(extent) > voxels + 0.5) return;
  const double whole = std::rint(voxels);
  axis->step = align_corners ? 2 / (whole - 1) : 2 / whole;
  axis->origin = align_corners ? -1 : 1 / whole - 1;
  axis->first = std::rint(first);
}

void set_image_axis(std::int64_t extent, const Rows& rows, bool align_corners, Axis* axis) {
  axis->extent = extent;
  axis->whole = rows.extent == 0 ? extent : rows.extent;
  axis->start = rows.start;
  axis->first_cell = -1;
  axis->end_cell = axis->whole;
  const auto n = static_cast<double>(axis->whole);
  axis->scale = align_corners ? (n - 1) / 2 : n / 2;
  axis->shift = align_corners ? axis->scale : axis->scale - 0.5;
}

void limit_cells(const char* operation, const Cells& cells, Axis* axis) {
  if (cells.first == 0 && cells.end == 0) return;
  require(cells.first < cells.end, "{}: cells are from {} to {}; the end must be above the first",
      operation, cells.first, cells.end);
  axis->first_cell = std::max<std::int64_t>(cells.first, -1);
  axis->end_cell = std::min(cells.end, axis->whole);
}

Extents spatial_of_field(const TensorView& field) {
  return Extents(std::span<const std::int64_t>(
      field.shape.begin() + 1, static_cast<std::size_t>(field.shape.rank() - 2)));
}

Extents output_shape(
    const char* operation, const TensorView& image, const SampleOptions& options, int rank) {
  const TensorView& field = options.grid.empty() ? options.displacement : options.grid;
  if (field.empty() && options.out_shape.rank() == 0) {
    return Extents(
        std::span<const std::int64_t>(image.shape.begin() + 2, static_cast<std::size_t>(rank)));
  }
  if (field.empty()) {
    require(options.out_shape.rank() == rank, "{}: out_shape is {}; it must have {} extents",
        operation, options.out_shape, rank);
    for (const std::int64_t extent : options.out_shape) {
      require(extent >= 1 && extent <= kLongestAxis,
          "{}: out_shape is {}; every extent must be from 1 to {}", operation, options.out_shape,
          kLongestAxis);
    }
    return options.out_shape;
  }
  const Extents shape = spatial_of_field(field);
  require(options.out_shape.rank() == 0 || options.out_shape == shape,
      "{}: out_shape is {}; it must be that of the field, {}", operation, options.out_shape, shape);
  return shape;
}

}  // namespace

void require_image(
    const char* operation, const char* argument, const TensorView& image, bool may_be_integer) {
  require(!image.empty(), "{}: {} has no data", operation, argument);
  require(image.shape.rank() == 4 || image.shape.rank() == 5,
      "{}: {} has shape {}; it must be [N, C, Y, X] or [N, C, Z, Y, X]", operation, argument,
      image.shape);
  require_extents(operation, argument, image);
  if (!may_be_integer) require_float(operation, argument, image);
}

void require_field(const char* operation, const char* argument, const TensorView& field) {
  require(!field.empty(), "{}: {} has no data", operation, argument);
  const Extents& s = field.shape;
  require((s.rank() == 4 && s[3] == 2) || (s.rank() == 5 && s[4] == 3),
      "{}: {} has shape {}; it must be [N, Y, X, 2] or [N, Z, Y, X, 3]", operation, argument, s);
  require_extents(operation, argument, field);
  require_float(operation, argument, field);
}

int rank_of_field(const TensorView& field) { return field.shape.rank() - 2; }

TensorView as_volumes(const TensorView& image, std::int64_t batch) {
  TensorView result = image;
  if (image.empty()) return result;
  if (image.shape.rank() == 4) {
    const Extents &e = image.shape, &s = image.strides;
    result.shape = {e[0], e[1], 1, e[2], e[3]};
    result.strides = {s[0], s[1], 0, s[2], s[3]};
  }
  return shared(result, batch);
}

TensorView as_field_of_volumes(const TensorView& field, std::int64_t batch) {
  TensorView result = field;
  if (field.empty()) return result;
  if (field.shape.rank() == 4) {
    const Extents &e = field.shape, &s = field.strides;
    result.shape = {e[0], 1, e[1], e[2], e[3]};
    result.strides = {s[0], 0, s[1], s[2], s[3]};
  }
  return shared(result, batch);
}

TensorView as_image(const TensorView& field) {
  TensorView result = field;
  if (field.empty()) return result;
  const int last = field.shape.rank() - 1;
  result.shape[1] = field.shape[last];
  result.strides[1] = field.strides[last];
  for (int axis = 1; axis < last; ++axis) {
    result.shape[axis + 1] = field.shape[axis];
    result.strides[axis + 1] = field.strides[axis];
  }
  return result;
}

void require_rows(
    const char* operation, const char* argument, const Rows& rows, std::int64_t held) {
  if (rows.extent == 0 && rows.start == 0) return;
  require(rows.extent >= 1 && rows.extent <= kLongestAxis,
      "{}: the extent of {} is {}; it must be from 1 to {}", operation, argument, rows.extent,
      kLongestAxis);
  require(rows.start >= 0 && rows.start <= rows.extent - held,
      "{}: {} begin at {}, and the array has {}; they must lie in an axis of {}", operation,
      argument, rows.start, held, rows.extent);
}

void set_output_axes(const char* operation, const Extents& shape, bool align_corners,
    const std::optional<Coordinates>& min_coords, const std::optional<Coordinates>& max_coords,
    const Rows& rows, Axis (&axes)[3]) {
  require_rows(operation, "rows", rows, shape[0]);
  for (int a = 0; a < shape.rank(); ++a) {
    const bool is_cut = a == shape.rank() - 1 && rows.extent != 0;
    const std::int64_t held = shape[shape.rank() - 1 - a], extent = is_cut ? rows.extent : held;
    const auto n = static_cast<double>(extent);
    const double edge = extent == 1 ? 0 : align_corners ? 1 : 1 - 1 / n;
    const double low = min_coords ? component(*min_coords, a) : -edge;
    const double high = max_coords ? component(*max_coords, a) : edge;
    require(std::isfinite(low) && std::isfinite(high),
        "{}: min_coords and max_coords are {} and {} along {}; they must be finite", operation, low,
        high, "xyz"[a]);
    set_output_axis(low, high, extent, align_corners, &axes[a]);
    axes[a].out_extent = held;
    axes[a].out_whole = extent;
    if (is_cut) axes[a].first += static_cast<double>(rows.start);
  }
}

Pass resolve(const char* operation, const TensorView& image, const SampleOptions& options) {
  Pass pass;
  pass.operation = operation;
  pass.rank = image.shape.rank() - 2;
  pass.is_grid = !options.grid.empty();
  require(!pass.is_grid || (options.affine.empty() && options.displacement.empty()),
      "{}: grid is given with {}; it holds absolute coordinates and stands alone", operation,
      options.affine.empty() ? "displacement" : "affine");
  const TensorView& field = pass.is_grid ? options.grid : options.displacement;
  const char* field_name = pass.is_grid ? "grid" : "displacement";
  if (!field.empty()) {
    require_field(operation, field_name, field);
    require(rank_of_field(field) == pass.rank, "{}: {} has shape {}; the image is {}D", operation,
        field_name, field.shape, pass.rank);
    require_same_device(operation, field_name, field, image);
  }
  require(options.grid_affine.empty() || !field.empty(),
      "{}: grid_affine is given without a displacement or a grid to multiply", operation);
  require_matrix(operation, "affine", options.affine, pass.rank, 1, image);
  require_matrix(operation, "grid_affine", options.grid_affine, pass.rank, 0, image);
  pass.batch = broadcast(operation, field_name, image.shape[0], field);
  pass.batch = broadcast(operation, "affine", pass.batch, options.affine);
  pass.batch = broadcast(operation, "grid_affine", pass.batch, options.grid_affine);
  pass.channels = image.shape[1];
  pass.mode = options.mode;
  pass.padding = options.padding_mode;
  pass.align_corners = options.align_corners;
  require(!field.empty() || options.out_shape.rank() != 0 || options.image_rows.extent == 0,
      "{}: image_rows is given without a field; give out_shape too", operation);
  set_output_axes(operation, output_shape(operation, image, options, pass.rank),
      options.align_corners, options.min_coords, options.max_coords, options.rows, pass.axes);
  require_rows(operation, "image_rows", options.image_rows, image.shape[2]);
  for (int a = 0; a < pass.rank; ++a) {
    set_image_axis(image.shape[image.shape.rank() - 1 - a],
        a == pass.rank - 1 ? options.image_rows : Rows{}, options.align_corners, &pass.axes[a]);
  }
  limit_cells(operation, options.cells, &pass.axes[pass.rank - 1]);
  pass.image = as_volumes(image, pass.batch);
  pass.field = as_field_of_volumes(field, pass.batch);
  pass.affine = shared(options.affine, pass.batch);
  pass.grid_affine = shared(options.grid_affine, pass.batch);
  return pass;
}

void require_result(const char* operation, const char* argument, const TensorView& result,
    const Extents& shape, const TensorView& image) {
  if (result.empty()) return;
  require(result.shape == shape, "{}: {} has shape {}; it must be {}", operation, argument,
      result.shape, shape);
  require_float(operation, argument, result);
  TensorView model = image;
  model.shape = shape;
  model.dtype = result.dtype;
  require_gradient(operation, argument, result, model);
}

void require_matrix_gradient(const char* operation, const char* argument,
    const TensorView& gradient, const char* operand_name, TensorView operand) {
  if (gradient.dtype == DType::f64) operand.dtype = DType::f64;
  require_operand_gradient(operation, argument, gradient, operand_name, operand);
}

void require_operand_gradient(const char* operation, const char* argument,
    const TensorView& gradient, const char* operand_name, const TensorView& operand) {
  if (gradient.empty()) return;
  require(!operand.empty(), "{}: {} is asked for, and there is no {}", operation, argument,
      operand_name);
  require(gradient.shape == operand.shape, "{}: {} has shape {}; it must be that of {}, {}",
      operation, argument, gradient.shape, operand_name, operand.shape);
  require(gradient.dtype == operand.dtype, "{}: {} is {}; it must be {} as {} is", operation,
      argument, gradient.dtype, operand.dtype, operand_name);
  require_gradient(operation, argument, gradient, operand);
}

void require_upstream(const char* operation, const TensorView& upstream, const Extents& shape,
    const TensorView& image, bool is_needed) {
  require(!is_needed || !upstream.empty(), "{}: a gradient is asked for, and upstream is empty",
      operation);
  if (upstream.empty()) return;
  require(upstream.shape == shape, "{}: upstream has shape {}; it must be {}", operation,
      upstream.shape, shape);
  require_float(operation, "upstream", upstream);
  require_same_device(operation, "upstream", upstream, image);
}

}  // namespace similis::warp_internal
