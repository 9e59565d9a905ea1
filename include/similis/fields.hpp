// SPDX-License-Identifier: Apache-2.0
// Exponentials, inverses and Jacobian determinants of vector fields, in 2D and 3D.
//
// A vector field is [N,Y,X,2] or [N,Z,Y,X,3] with components in the order (x, y, z), x the fastest
// axis, of f16, bf16, f32 or f64 and with any strides. It holds displacements u of x + u(x) in
// coordinates that run from -1 to 1 along each axis: with align_corners voxel i of n is at
// -1 + 2i/(n-1), without at (2i+1)/n - 1; an axis of one voxel is at 0.
#pragma once

#include <optional>

#include "similis/api.h"
#include "similis/coordinates.hpp"
#include "similis/execution.hpp"
#include "similis/tensor.hpp"

namespace similis {

/// Part of a field that is cut along z (y in 2D): u holds `rows` of the whole, and the result those
/// from row `first` of the whole on, as many as it has. By default both are whole.
struct FieldRows {
  Rows rows = {};
  std::int64_t first = 0;
};

/// exp(v) by scaling and squaring: u = v/2ⁿ, then n times u ← u + u(x + u). n from 0 to 32. Outside
/// its grid the field is 0.
SIMILIS_API Tensor exponentiate(
    const TensorView& v, int n = 7, bool align_corners = true, const Execution& exec = {});

/// Into memory of the caller: shaped as v, any float dtype.
SIMILIS_API void exponentiate_into(const TensorView& v, const TensorView& output, int n = 7,
    bool align_corners = true, const Execution& exec = {});

struct Inverse {
  Tensor displacement;
  Tensor residual;  ///< [N], f32 or f64: the largest norm of u(x + w) + w, where w is the inverse
};
/// The displacement w that solves u(x + w) + w = 0, by damped Newton steps from -u, at each voxel
/// until that norm is at most `tolerance` voxels, or `iterations` times. Outside its grid u has the
/// value at the border. The residual, in u's units, is larger than `tolerance` where x + u(x)
/// folds, or takes no voxel there; NaN if u has one. Workspace: for f16 and bf16 the field in f32.
SIMILIS_API Inverse invert(const TensorView& u, int iterations = 30, bool align_corners = true,
    double tolerance = 0.01, const Execution& exec = {});

/// Into memory of the caller, which is not u's; residual may be empty. With `part` a residual is
/// infinite where a row of u is needed that it does not hold: give more of them.
SIMILIS_API void invert_into(const TensorView& u, const TensorView& output,
    const TensorView& residual, int iterations = 30, bool align_corners = true,
    double tolerance = 0.01, const Execution& exec = {}, const FieldRows& part = {});

struct JacobianDeterminant {
  Tensor determinant;  ///< [N,Y,X] or [N,Z,Y,X], in u's dtype
  Tensor folds;  ///< [N], f64: number of voxels whose determinant is not above 0, NaN included
};
/// The determinant of the derivative of x + u(x): central differences inside, one-sided at the
/// border, exact for affine maps; along an axis of one voxel u counts as constant.
SIMILIS_API JacobianDeterminant jacobian_determinant(const TensorView& u, bool align_corners = true,
    const std::optional<Coordinates>& min_coords = {},
    const std::optional<Coordinates>& max_coords = {}, const Execution& exec = {});
/// Into memory of the caller. With `part` u holds a row before and one behind those of determinant,
/// where the whole has them; coordinates are the whole's, and folds are counted in determinant.
SIMILIS_API void jacobian_determinant_into(const TensorView& u, const TensorView& determinant,
    const TensorView& folds, bool align_corners = true,
    const std::optional<Coordinates>& min_coords = {},
    const std::optional<Coordinates>& max_coords = {}, const Execution& exec = {},
    const FieldRows& part = {});

}  // namespace similis
