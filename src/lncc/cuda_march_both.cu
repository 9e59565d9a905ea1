// SPDX-License-Identifier: Apache-2.0
// The march with five fields: the value and both images' gradients.
#include "src/lncc/cuda_march_kernel.cuh"

namespace similis::lncc_internal {
template void launch_march<5>(const CudaPlan& plan, March march);
}  // namespace similis::lncc_internal
