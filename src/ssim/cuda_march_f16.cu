// SPDX-License-Identifier: Apache-2.0
// The march over f16 images.
#include "src/ssim/cuda_march_kernel.cuh"

#if !defined(__HIPCC__)

namespace similis::ssim_internal {

MarchVariant march_of_f16(MarchKind kind) {
  using Pairs = Pictures<F16>;
  return kind.gradient ? variant<Pairs, true, true>(kind.wide)
                       : variant<Pairs, false, true>(kind.wide);
}

}  // namespace similis::ssim_internal

#endif
