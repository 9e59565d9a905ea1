// SPDX-License-Identifier: Apache-2.0
// The march over sums and differences, what halved images are kept as.
#include "src/ssim/cuda_march_kernel.cuh"

#if !defined(__HIPCC__)

namespace similis::ssim_internal {

MarchVariant march_of_sums(MarchKind kind) {
  using Pairs = Sums;
  return kind.gradient ? variant<Pairs, true, true>(kind.wide)
                       : variant<Pairs, false, true>(kind.wide);
}

}  // namespace similis::ssim_internal

#endif
