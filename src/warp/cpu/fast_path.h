// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "src/warp/cpu/plan.h"

namespace similis::warp_internal {

/// Says in the plan what its tasks can make use of, before they run. sums: see scatter.h. If the
/// plan has sums_of_image afterwards, its tasks add to them and must run one after the other.
void prepare_fast_path(Plan* plan, const TensorView& sums, const Execution& exec);

/// Computes a task of the plan, and returns true, if all of its calls have a fast path: see
/// fast_path.cc. Otherwise it does nothing and returns false.
bool run_fast_task(Plan* plan, std::int64_t index);

/// Clears the part of the plan's sums_of_image that no task added to, after all tasks.
void finish_fast_path(Plan* plan);

}  // namespace similis::warp_internal
