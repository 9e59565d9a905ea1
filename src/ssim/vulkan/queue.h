// SPDX-License-Identifier: Apache-2.0
// A pass of SSIM as commands for a Vulkan device, for SSIM itself and for the levels of MS-SSIM.
#pragma once

#include "src/gpu/launch/vulkan/elements.h"
#include "src/gpu/vulkan/commands.h"
#include "src/ssim/ssim.h"

namespace similis::ssim_internal {

/// Throws DeviceError, for the operation, if there are no kernels for the pass, as for volumes.
void require_kernels(const char* operation, const Pass& pass, bool are_volumes);

/// Queues the kernels of a pass that has them. With pass.of_sums the ground is what x and y are
/// less in each plane: f32, [N,C,2].
void queue_ssim(const char* operation, gpu::vulkan::Commands& commands,
    gpu::vulkan::Results& results, const Pass& pass, const TensorView& ground = {});

}  // namespace similis::ssim_internal
