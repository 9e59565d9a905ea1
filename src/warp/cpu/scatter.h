// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "src/warp/cpu/plan.h"

namespace similis::warp_internal {

/// The gradient to the image, once the plan knows the planes that each row touches.
void scatter_cpu(const Plan& plan, const Execution& exec);

}  // namespace similis::warp_internal
