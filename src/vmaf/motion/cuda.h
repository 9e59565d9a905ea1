// SPDX-License-Identifier: Apache-2.0
// Motion on the GPU: what is queued for consecutive reference frames.
#pragma once

#include <array>
#include <cstdint>

#include "src/vmaf/cuda/images.h"

namespace similis::vmaf_internal {

constexpr int kMotionLags = 2;  ///< one frame back, and two

/// Dense copies of the reference frames before a batch, the latest first; null: there is none.
using EarlierFrames = std::array<void*, kMotionLags>;

/// Queues the sums of frames that have an earlier one. sums: [frame][kMotionLags], to which they
/// add. lags: which of them are wanted.
void queue_motion(const GpuPairs& pairs, const EarlierFrames& earlier,
    const std::array<bool, kMotionLags>& lags, GpuSum* sums, void* stream);

/// Queues a dense copy of one reference frame.
void queue_copy(const GpuPairs& pairs, std::int64_t frame, void* to, void* stream);

/// Queues the search for samples of more than bit_depth bits. largest: [frame of the reference],
/// then [pair]; those that there are take the place of a smaller one.
void queue_largest(const GpuPairs& pairs, std::uint32_t* largest, void* stream);

}  // namespace similis::vmaf_internal
