// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "src/warp/cpu/plan.h"

namespace similis::warp_internal {

/// The sums of the gradient to the image: in the gradient itself, or for halves, which are rounded
/// once, in the workspace.
struct ImageSums {
  Tensor workspace;
  TensorView view;  ///< empty if the gradient is not wanted
};
ImageSums sums_of_image(const Pass& pass, const Execution& exec);

/// Adds up the gradient to the image, once the plan knows the planes that each row touches.
void scatter_cpu(const Plan& plan, const TensorView& sums, const Execution& exec);

/// Makes the gradient from sums in a workspace.
void store_image_gradient(const Pass& pass, const ImageSums& sums, const Execution& exec);

}  // namespace similis::warp_internal
