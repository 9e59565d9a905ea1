// SPDX-License-Identifier: Apache-2.0
// libvmaf's SSIM family in plain loops, one pixel after the other, to check the backends with, bit
// for bit.
#pragma once

#include <vector>

#include "src/libvmaf_ssim/libvmaf_ssim.h"

namespace similis::libvmaf_ssim_internal {

/// The score of each pair; planes on the CPU.
std::vector<double> reference_integer_ssim(const PlanePairs& planes);
std::vector<SsimMeans> reference_float_ssim(const PlanePairs& planes, int scale);
std::vector<MsSsimMeans> reference_float_ms_ssim(const PlanePairs& planes);

}  // namespace similis::libvmaf_ssim_internal
