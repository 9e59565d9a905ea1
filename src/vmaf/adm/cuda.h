// SPDX-License-Identifier: Apache-2.0
// ADM on the GPU: what is queued for a batch of pairs.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "src/vmaf/adm/formula.h"
#include "src/vmaf/cuda/images.h"

namespace similis::vmaf_internal {

/// Settings that one pass takes, and the numbers that it sums: of the reference's bands (and one
/// unused), then for each setting of the bands of the detail and of what is added.
constexpr int kAdmGpuSettings = 2, kAdmGpuSums = 4 + kAdmGpuSettings * 2 * kAdmBands;

struct AdmGpuSetting {
  double gain_limit;
  AdmSensitivity sensitivity;
};

/// Approximations of a batch, whose pixels are the reference's and the distorted image's numbers,
/// and the sums of rows.
struct AdmGpuWorkspace {
  AdmGpuWorkspace(const GpuPairs& pairs, GpuCut& cut);
  std::array<std::int64_t*, kAdmScales> approximations{};  ///< that scale's input; none of scale 0
  GpuSum* rows = nullptr;  ///< [scale][pair][row of the bands][kAdmGpuSums]
  std::int64_t row_sums = 0;
};

/// Queues the kernels for up to kAdmGpuSettings settings. sums: [pair][scale][kAdmGpuSums], which
/// they write.
void queue_adm(const GpuPairs& pairs, std::span<const AdmGpuSetting> settings, bool skips_scale0,
    const AdmGpuWorkspace& workspace, GpuSum* sums, void* stream);

}  // namespace similis::vmaf_internal
