// SPDX-License-Identifier: Apache-2.0
// The instances of the sliding window kernel for sums and differences, the form of halved images,
// which have neither masks nor maps.
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
