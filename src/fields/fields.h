// SPDX-License-Identifier: Apache-2.0
// Computations on vector fields besides sampling them, as fields.cc hands them to a backend.
#pragma once

#include "similis/execution.hpp"
#include "src/core/operation.h"
#include "src/warp/warp.h"

namespace similis::fields_internal {

using warp_internal::Axis;

/// residual[n] = the largest norm of the vectors field[n], of [N,Z,Y,X,d].
void largest_norm_cpu(const TensorView& field, const TensorView& residual, const Execution& exec);
void largest_norm_cuda(const TensorView& field, const TensorView& residual, const Execution& exec);

/// u is [N,Z,Y,X,d], determinant [N,Z,Y,X], folds [N]; axes give the distance between voxels.
struct JacobianPass {
  int rank = 3;
  Axis axes[3];
  TensorView u, determinant, folds;
};
void jacobian_cpu(const JacobianPass& pass, const Execution& exec);
void jacobian_cuda(const JacobianPass& pass, const Execution& exec);

extern const Step<decltype(largest_norm_cpu)> kLargestNorm;
extern const Step<decltype(jacobian_cpu)> kJacobian;

}  // namespace similis::fields_internal
