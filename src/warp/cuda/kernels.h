// SPDX-License-Identifier: Apache-2.0
// The kernels of a pass, by arithmetic type and mode; each of their files compiles by itself.
#pragma once

#include "src/warp/cuda/pass.h"

namespace similis::warp_internal {

using Kernel = void (*)(GpuPass);

Kernel values_kernel_for(bool is_f64, Interpolation mode);
Kernel gradients_kernel_for(bool is_f64, Interpolation mode, bool with_sums);
Kernel labels_kernel_for(bool is_f64, bool is_gradient);

}  // namespace similis::warp_internal
