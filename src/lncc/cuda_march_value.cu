// SPDX-License-Identifier: Apache-2.0
// The march with no fields: the value, and ANTs' gradients.
#include "src/lncc/cuda_march_kernel.cuh"

namespace similis::lncc_internal {
template void launch_march<0>(const CudaPlan& plan, March march);
}  // namespace similis::lncc_internal
