// SPDX-License-Identifier: Apache-2.0
// The second sliding window kernel where all pixels weigh alike.
#include "src/lncc/cuda/sliding_window_gradient.cuh"

namespace similis::lncc_internal {

std::int64_t gradient_bytes(const Tiles& tiles, const int (&radius)[3], Form form) {
  if (form == Form::far) return SharedTile::bytes(tiles);
  const std::int64_t derivative =
      form == Form::f64 ? sizeof(CentreDerivatives<double>) : sizeof(CentreDerivatives<float>);
  return SharedTile::bytes(tiles) +
         2 * derivative * stage_columns(tiles, radius[2]) * tiles.threads_across +
         gpu::BulkCopies::kBytes;
}

void launch_gradient(const CudaPlan& plan, const GradientArguments& arguments, Form form) {
  const int columns = 2 * plan.problem.geometry.radius[2] + 1;
  const auto kernel =
      form == Form::far   ? gradient_kernel<double, Far>
      : form == Form::f64 ? gradient_kernel<double, Stage<double>>
      : form == Form::half
          ? (plan.pass.x.dtype == DType::f16 ? gradient_kernel<float, Stage<float>, 0, F16>
                                             : gradient_kernel<float, Stage<float>, 0, BF16>)
      : columns == 3 ? gradient_kernel<float, Stage<float>, 3>
      : columns == 5 ? gradient_kernel<float, Stage<float>, 5>
                     : gradient_kernel<float, Stage<float>>;
  const auto bytes =
      static_cast<std::size_t>(gradient_bytes(arguments.tiles, plan.problem.geometry.radius, form));
  gpu::allow_shared_bytes(kernel, bytes);
  gpu::launch("lncc", plan.exec.queue.handle, static_cast<unsigned>(arguments.tiles.blocks()),
      arguments.tiles.threads(), bytes, kernel, arguments);
}

}  // namespace similis::lncc_internal
