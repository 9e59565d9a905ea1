// SPDX-License-Identifier: Apache-2.0
// The march over f32 images.
#include "src/ssim/cuda_march_kernel.cuh"

#if !defined(__HIPCC__)

namespace similis::ssim_internal {

MarchVariant march_of_f32(MarchKind kind) {
  using Pairs = Pictures<float>;
  if (kind.gradient) {
    return kind.extras ? variant<Pairs, true, true>(kind.wide)
                       : variant<Pairs, true, false>(kind.wide);
  }
  return kind.extras ? variant<Pairs, false, true>(kind.wide)
                     : variant<Pairs, false, false>(kind.wide);
}

}  // namespace similis::ssim_internal

#endif
