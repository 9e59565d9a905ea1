// SPDX-License-Identifier: Apache-2.0
// The map of a pair's losses from those of its scales.
#pragma once

#include "similis/execution.hpp"
#include "src/ssimulacra2/cpu_plan.h"

namespace similis::ssimulacra2_internal {

/// Adds the losses of one scale to a map as large as the picture: averaged with their neighbours by
/// 1/4, 1/2, 1/4 along both axes, and interpolated linearly between the scale's pixels, so that
/// neither a pixel nor a block stands out that the scale's windows do not resolve. The sum over the
/// map is that of the losses where the picture is a multiple of the scale's pixels.
void add_to_map(const Rows& losses, const Extent& extent, int scale, const Rows& map,
    const Extent& map_extent, const Execution& exec);

}  // namespace similis::ssimulacra2_internal
