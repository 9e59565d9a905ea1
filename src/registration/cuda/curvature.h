// SPDX-License-Identifier: Apache-2.0
// precondition() between fused kernels, with no wait for the host.
#pragma once

#include "src/registration/passes.h"
#include "src/smooth/cuda.h"

namespace similis::registration_internal::cuda {

/// And the largest vector of the result, for the gate.
void launch_precondition(const GridRows& rows, const float* q, float* field,
    const smooth_internal::Gate& gate, const Execution& exec);
/// field ← (1 + Q)·field, which takes that back.
void launch_restoration(const GridRows& rows, const float* q, float* field,
    const smooth_internal::Gate& gate, const Execution& exec);

}  // namespace similis::registration_internal::cuda
