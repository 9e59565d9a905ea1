// SPDX-License-Identifier: Apache-2.0
// Backends of inverses and Jacobians; exponentials are steps of src/warp.
#include "src/fields/fields.h"

namespace similis::fields_internal {

constinit const Step<decltype(invert_cpu)> kInvert = {{invert_cpu, SIMILIS_IF_CUDA(invert_cuda)}};
constinit const Step<decltype(jacobian_cpu)> kJacobian = {
    {jacobian_cpu, SIMILIS_IF_CUDA(jacobian_cuda)}};

}  // namespace similis::fields_internal
