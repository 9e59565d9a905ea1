// SPDX-License-Identifier: Apache-2.0
// The instances of the sliding window kernel for bytes, which have no gradient.
#include "src/ssim/cuda/sliding_window_kernel.cuh"

#if !defined(__HIPCC__)

namespace similis::ssim_internal {

SlidingWindowVariant sliding_window_of_u8(SlidingWindowKind kind) {
  return plain_or_all<Pictures<std::uint8_t>, false>(kind);
}

}  // namespace similis::ssim_internal

#endif
