// SPDX-License-Identifier: Apache-2.0
// The instances of the sliding window kernel for f32 images.
#include "src/ssim/cuda/sliding_window_kernel.cuh"

#if !defined(__HIPCC__)

namespace similis::ssim_internal {

SlidingWindowVariant sliding_window_of_f32(SlidingWindowKind kind) {
  using Pairs = Pictures<float>;
  if (kind.radius > 5) {
    return kind.gradient
               ? variant<SlidingWindowPolicy<Pairs, 256, 8, 1, true, Scope::plain, 10>>()
               : variant<SlidingWindowPolicy<Pairs, 128, 8, 3, false, Scope::plain, 10>>();
  }
  if (kind.gradient && kind.scope == Scope::training) {
    return variant<Pairs, true, Scope::training>(kind.wide);
  }
  if (kind.scope == Scope::masked) {
    return kind.gradient ? variant<Pairs, true, Scope::masked>(kind.wide)
                         : variant<Pairs, false, Scope::masked>(kind.wide);
  }
  return plain_or_all<Pairs>(kind);
}

}  // namespace similis::ssim_internal

#endif
