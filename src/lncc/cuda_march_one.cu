// SPDX-License-Identifier: Apache-2.0
// The march with three fields: the value and one image's gradient.
#include "src/lncc/cuda_march_kernel.cuh"

namespace similis::lncc_internal {
template void launch_march<3>(const CudaPlan& plan, March march);
}  // namespace similis::lncc_internal
