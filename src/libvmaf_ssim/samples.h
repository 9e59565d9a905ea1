// SPDX-License-Identifier: Apache-2.0
// Refuses planes with samples above their bit depth.
#pragma once

#include "src/libvmaf_ssim/libvmaf_ssim.h"

namespace similis::libvmaf_ssim_internal {

/// Throws InvalidArgument if a sample on the CPU is above 2^bit_depth - 1.
void require_samples(const char* operation, const PlanePairs& planes, const Execution& exec);

}  // namespace similis::libvmaf_ssim_internal
