// SPDX-License-Identifier: Apache-2.0
// Computations on vector fields besides sampling them, as fields.cc hands them to a backend.
#pragma once

#include <optional>

#include "similis/coordinates.hpp"
#include "similis/execution.hpp"
#include "similis/fields.hpp"
#include "src/core/operation.h"
#include "src/fields/inverse.h"
#include "src/warp/warp.h"

namespace similis::fields_internal {

using warp_internal::Axis;

// The options of each operation, which its C++ function takes one by one.
struct ExponentiateOptions {
  bool align_corners = true;
};
struct InvertOptions {
  bool align_corners = true;
  double tolerance = 0.01;
};
struct JacobianOptions {
  bool align_corners = true;
  std::optional<Coordinates> min_coords = {}, max_coords = {};
};
/// A part of a field as C gives it: the rows of the whole that the result has, and those that the
/// field has.
struct FieldPart {
  Rows rows = {}, image_rows = {};
  FieldRows for_cpp() const { return {.rows = image_rows, .first = rows.start}; }
};

extern const OperationTable kExponentiateTable, kInvertTable, kJacobianTable;

/// u is [N,Z,Y,X,d] in f32 or f64, output likewise of any float dtype; residual [N] or empty.
struct InversePass {
  int rank = 3;
  bool align_corners = true;
  TensorView u, output, residual;
  int iterations = 30;
  double tolerance = 0.01;  // voxels
  std::int64_t extent = 1;  // of the whole's axis that u is cut along, z or y
  std::int64_t start = 0;   // u's first row of it
  std::int64_t first = 0;   // output's first row of it

  bool is_part() const { return u.shape[4 - rank] != extent; }
};
void invert_cpu(const InversePass& pass, const Execution& exec);
void invert_cuda(const InversePass& pass, const Execution& exec);

template <class T> InverseOptions<T> inverse_options(const InversePass& pass) {
  InverseOptions<T> o{};
  for (int a = 0; a < pass.rank; ++a) {
    const std::int64_t voxels = a == pass.rank - 1 ? pass.extent : pass.u.shape[3 - a];
    const auto extent = static_cast<double>(voxels);
    o.last[a] = static_cast<int>(voxels - 1);
    o.stride[a] = pass.u.strides[3 - a];
    o.scale[a] = static_cast<T>((pass.align_corners ? extent - 1 : extent) / 2);
    o.unit[a] = o.scale[a] > 0 ? o.scale[a] : 1;
  }
  o.start = static_cast<int>(pass.start);
  o.last_row = static_cast<int>(pass.u.shape[4 - pass.rank] - 1);
  o.component = pass.u.strides[4];
  o.tolerance_squared = static_cast<T>(pass.tolerance * pass.tolerance);
  o.iterations = pass.iterations;
  return o;
}

/// u is [N,Z,Y,X,d], determinant [N,Z,Y,X], folds [N]; axes give the distance between voxels.
struct JacobianPass {
  int rank = 3;
  std::int64_t first = 0;  // determinant's first row of u, along z, or y in 2D
  Axis axes[3];
  TensorView u, determinant, folds;
};
void jacobian_cpu(const JacobianPass& pass, const Execution& exec);
void jacobian_cuda(const JacobianPass& pass, const Execution& exec);

extern const Step<decltype(invert_cpu)> kInvert;
extern const Step<decltype(jacobian_cpu)> kJacobian;

}  // namespace similis::fields_internal
