// SPDX-License-Identifier: Apache-2.0
// The march over bf16 images.
#include "src/ssim/cuda/sliding_window_kernel.cuh"

#if !defined(__HIPCC__)

namespace similis::ssim_internal {

SlidingWindowVariant sliding_window_of_bf16(SlidingWindowKind kind) {
  using Pairs = Pictures<BF16>;
  const bool is_plain = kind.scope == Scope::plain;
  if (kind.gradient) {
    return is_plain ? variant<Pairs, true, Scope::plain>(kind.wide)
                    : variant<Pairs, true, Scope::all>(kind.wide);
  }
  return is_plain ? variant<Pairs, false, Scope::plain>(kind.wide)
                  : variant<Pairs, false, Scope::all>(kind.wide);
}

}  // namespace similis::ssim_internal

#endif
