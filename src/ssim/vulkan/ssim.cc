// SPDX-License-Identifier: Apache-2.0
// SSIM through Vulkan: values, maps and gradients of images under windows of up to 11. Images on
// the CPU are copied over, and results back, in the same commands.
#include "src/gpu/vulkan/device_functions.h"
#include "src/ssim/vulkan/queue.h"

namespace similis::ssim_internal {

void ssim_vulkan(const Pass& pass, const Execution& exec) {
  const char* const operation = pass.l1_weight == 0 ? "ssim" : "l1_ssim";
  require_kernels(operation, pass, pass.x.shape[2] != 1);
  gpu::vulkan::Gpu& gpu = gpu::vulkan::gpu_of(operation, pass.x.device, exec);
  gpu::vulkan::Commands commands(gpu);
  gpu::vulkan::Results results(operation, commands);
  queue_ssim(operation, commands, results, pass);
  results.finish();
}

}  // namespace similis::ssim_internal
