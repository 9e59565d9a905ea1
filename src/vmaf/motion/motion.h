// SPDX-License-Identifier: Apache-2.0
// Motion between two reference frames.
#pragma once

#include <atomic>
#include <cstdint>

#include "src/vmaf/frame_tasks.h"
#include "src/vmaf/plane.h"

namespace similis::vmaf_internal {

constexpr std::int64_t kMotionSmallestSide = 3;

/// The sum of magnitudes of the smoothed difference of two frames, in 1/256 of 8-bit code values,
/// by loops as the definition has them.
std::int64_t reference_motion_sad(const Plane& earlier, const Plane& later);

/// Adds tasks that add the same, in vectors, to `sum`. Planes and sum must last until they have
/// run.
void add_motion_tasks(
    const Plane& earlier, const Plane& later, FrameTasks& tasks, std::atomic<std::int64_t>& sum);

}  // namespace similis::vmaf_internal
