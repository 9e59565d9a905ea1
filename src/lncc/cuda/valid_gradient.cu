// SPDX-License-Identifier: Apache-2.0
// The second sliding window kernel under valid_mask, which multiplies the gradient of each pixel by
// the pixel's weight.
#include "src/lncc/cuda/sliding_window_gradient.cuh"

namespace similis::lncc_internal {

void launch_valid_gradient(const CudaPlan& plan, const GradientArguments& arguments) {
  const auto kernel = plan.pass.valid_mask.dtype == DType::f32
                          ? gradient_kernel<float, Stage<float>, 0, float, float>
                          : gradient_kernel<float, Stage<float>, 0, float, std::uint8_t>;
  const auto bytes = static_cast<std::size_t>(
      gradient_bytes(arguments.tiles, plan.problem.geometry.radius, Form::valid));
  gpu::allow_shared_bytes(kernel, bytes);
  gpu::launch("lncc", plan.exec.queue.handle, static_cast<unsigned>(arguments.tiles.blocks()),
      arguments.tiles.threads(), bytes, kernel, arguments);
}

}  // namespace similis::lncc_internal
