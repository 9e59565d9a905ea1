// SPDX-License-Identifier: Apache-2.0
// Backends of norms and Jacobians; exponentials and inverses are steps of src/warp.
#include "src/fields/fields.h"

namespace similis::fields_internal {

constinit const Step<decltype(largest_norm_cpu)> kLargestNorm = {
    {largest_norm_cpu, SIMILIS_IF_CUDA(largest_norm_cuda)}};
constinit const Step<decltype(jacobian_cpu)> kJacobian = {
    {jacobian_cpu, SIMILIS_IF_CUDA(jacobian_cuda)}};

}  // namespace similis::fields_internal
