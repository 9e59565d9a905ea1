// SPDX-License-Identifier: Apache-2.0
// The march over bytes, which have no gradient.
#include "src/ssim/cuda/sliding_window_kernel.cuh"

#if !defined(__HIPCC__)

namespace similis::ssim_internal {

MarchVariant march_of_u8(MarchKind kind) {
  using Pairs = Pictures<std::uint8_t>;
  return kind.scope == Scope::plain ? variant<Pairs, false, Scope::plain>(kind.wide)
                                    : variant<Pairs, false, Scope::all>(kind.wide);
}

}  // namespace similis::ssim_internal

#endif
