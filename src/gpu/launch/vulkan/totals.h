// SPDX-License-Identifier: Apache-2.0
// Results of a reduction from the sums of workgroups.
#pragma once

#include <cstdint>

#include "src/gpu/launch/vulkan/elements.h"

namespace similis::gpu::vulkan {

/// Result i is bias + factor · (the sum of sums[i·count … (i + 1)·count)).
struct Totals {
  std::int64_t results, count;
  double bias, factor;
};

/// Queues the kernel that adds up f32 sums, in f64 and in a fixed order, and writes f32 or f64. The
/// results are dense.
void queue_totals(
    Commands& commands, VkBuffer sums, const Totals& totals, const Elements& results, DType dtype);

}  // namespace similis::gpu::vulkan
