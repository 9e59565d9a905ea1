// SPDX-License-Identifier: Apache-2.0
// The instances of the sliding window kernel for images of any strides and dtype, which threads
// load.
#include "src/ssim/cuda/sliding_window_kernel.cuh"

#if !defined(__HIPCC__)

namespace similis::ssim_internal {

SlidingWindowVariant sliding_window_of_any(SlidingWindowKind kind) {
  return plain_or_all<AnyPictures>(kind);
}

}  // namespace similis::ssim_internal

#endif
