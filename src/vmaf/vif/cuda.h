// SPDX-License-Identifier: Apache-2.0
// VIF on the GPU: what is queued for a batch of pairs.
#pragma once

#include <array>
#include <span>

#include "src/vmaf/cuda/images.h"
#include "src/vmaf/vif/vif.h"

namespace similis::vmaf_internal {

/// Gain limits that one pass takes, and the numbers that it sums: pixels that are flat, what is
/// left there, the reference's information, and the distorted image's by limit.
constexpr int kVifGpuLimits = 5, kVifGpuSums = 3 + kVifGpuLimits;

/// The smaller scales of a batch, whose pixels are a pair of words each, and its sums.
struct VifGpuWorkspace {
  VifGpuWorkspace(const GpuPairs& pairs, GpuCut& cut);
  std::array<std::uint32_t*, kVifScales> halves{};  ///< [pair][row][column]; none of scale 0
};

/// Queues the kernels for up to kVifGpuLimits limits. sums: [pair][scale][kVifGpuSums], to which
/// they add.
void queue_vif(const GpuPairs& pairs, std::span<const double> gain_limits, bool skips_scale0,
    const VifGpuWorkspace& workspace, GpuSum* sums, void* stream);

}  // namespace similis::vmaf_internal
