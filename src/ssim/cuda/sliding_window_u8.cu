// SPDX-License-Identifier: Apache-2.0
// The march over bytes, which have no gradient.
#include "src/ssim/cuda/sliding_window_kernel.cuh"

#if !defined(__HIPCC__)

namespace similis::ssim_internal {

SlidingWindowVariant sliding_window_of_u8(SlidingWindowKind kind) {
  using Pairs = Pictures<std::uint8_t>;
  return kind.scope == Scope::plain ? variant<Pairs, false, Scope::plain>(kind.wide)
                                    : variant<Pairs, false, Scope::all>(kind.wide);
}

}  // namespace similis::ssim_internal

#endif
