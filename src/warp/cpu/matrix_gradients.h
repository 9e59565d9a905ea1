// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "src/warp/cpu/plan.h"

namespace similis::warp_internal {

/// Stores the gradients to matrices, from the sums of all tasks in their order.
void store_matrices(const Plan& plan);

}  // namespace similis::warp_internal
