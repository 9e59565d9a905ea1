// SPDX-License-Identifier: Apache-2.0
// The instances of the sliding window kernel for bf16 images.
#include "src/ssim/cuda/sliding_window_kernel.cuh"

#if !defined(__HIPCC__)

namespace similis::ssim_internal {

SlidingWindowVariant sliding_window_of_bf16(SlidingWindowKind kind) {
  return plain_or_all<Pictures<BF16>>(kind);
}

}  // namespace similis::ssim_internal

#endif
