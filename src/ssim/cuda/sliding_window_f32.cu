// SPDX-License-Identifier: Apache-2.0
// The instances of the sliding window kernel for f32 images.
#include "src/ssim/cuda/sliding_window_kernel.cuh"

#if !defined(__HIPCC__)

namespace similis::ssim_internal {

SlidingWindowVariant sliding_window_of_f32(SlidingWindowKind kind) {
  using Pairs = Pictures<float>;
  if (kind.gradient && kind.scope == Scope::training) {
    return variant<Pairs, true, Scope::training>(kind.wide);
  }
  return plain_or_all<Pairs>(kind);
}

}  // namespace similis::ssim_internal

#endif
