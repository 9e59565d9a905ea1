// SPDX-License-Identifier: Apache-2.0
// The march over f32 images.
#include "src/ssim/cuda/sliding_window_kernel.cuh"

#if !defined(__HIPCC__)

namespace similis::ssim_internal {

SlidingWindowVariant sliding_window_of_f32(SlidingWindowKind kind) {
  using Pairs = Pictures<float>;
  const bool is_plain = kind.scope == Scope::plain;
  if (!kind.gradient) {
    return is_plain ? variant<Pairs, false, Scope::plain>(kind.wide)
                    : variant<Pairs, false, Scope::all>(kind.wide);
  }
  switch (kind.scope) {
    case Scope::plain: return variant<Pairs, true, Scope::plain>(kind.wide);
    case Scope::training: return variant<Pairs, true, Scope::training>(kind.wide);
    default: return variant<Pairs, true, Scope::all>(kind.wide);
  }
}

}  // namespace similis::ssim_internal

#endif
