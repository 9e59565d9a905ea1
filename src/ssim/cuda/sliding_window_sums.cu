// SPDX-License-Identifier: Apache-2.0
// The march over sums and differences, what halved images are kept as: never masked, nor a map.
#include "src/ssim/cuda/sliding_window_kernel.cuh"

#if !defined(__HIPCC__)

namespace similis::ssim_internal {

SlidingWindowVariant sliding_window_of_sums(SlidingWindowKind kind) {
  using Pairs = Sums;
  return kind.gradient ? variant<Pairs, true, Scope::training>(kind.wide)
                       : variant<Pairs, false, Scope::training>(kind.wide);
}

}  // namespace similis::ssim_internal

#endif
