// SPDX-License-Identifier: Apache-2.0
// Makes a Pass of a caller's arguments: validates them, and turns 2D into volumes of one plane.
#pragma once

#include <optional>

#include "src/warp/warp.h"

namespace similis::warp_internal {

/// [N,C,Y,X] or [N,C,Z,Y,X] of a floating-point dtype (any, for labels).
void require_image(const char* operation, const char* argument, const TensorView& image,
    bool may_be_integer = false);
/// [N,Y,X,2] or [N,Z,Y,X,3].
void require_field(const char* operation, const char* argument, const TensorView& field);

/// The number of spatial axes of a vector field.
int rank_of_field(const TensorView& field);

/// The pass without results, for an image that has been checked.
Pass resolve(const char* operation, const TensorView& image, const SampleOptions& options);

/// The axes of an output of this shape ([Y,X] or [Z,Y,X]), which are `rows` of a whole one; the
/// image's half is left out.
void set_output_axes(const char* operation, const Extents& shape, bool align_corners,
    const std::optional<Coordinates>& min_coords, const std::optional<Coordinates>& max_coords,
    const Rows& rows, Axis (&axes)[3]);

/// Refuses rows that are not in the axis; `held` is their number.
void require_rows(const char* operation, const char* argument, const Rows& rows, std::int64_t held);

/// [N,C,Y,X] as [N,C,1,Y,X], [N,Y,X,2] as [N,1,Y,X,2]; stride 0 along N where one serves `batch`.
TensorView as_volumes(const TensorView& image, std::int64_t batch);
TensorView as_field_of_volumes(const TensorView& field, std::int64_t batch);
/// The field's components as channels, [N,d,Z,Y,X] or [N,d,Y,X].
TensorView as_image(const TensorView& field);

/// A result: this shape, a float dtype, the device, no element twice. Empty views pass.
void require_result(const char* operation, const char* argument, const TensorView& result,
    const Extents& shape, const TensorView& image);
/// A gradient, also of its operand's dtype; refused where the operand was left out.
void require_operand_gradient(const char* operation, const char* argument,
    const TensorView& gradient, const char* operand_name, const TensorView& operand);
/// The same for a matrix: also f64, whatever the matrix.
void require_matrix_gradient(const char* operation, const char* argument,
    const TensorView& gradient, const char* operand_name, TensorView operand);
void require_upstream(const char* operation, const TensorView& upstream, const Extents& shape,
    const TensorView& image, bool is_needed);

}  // namespace similis::warp_internal
