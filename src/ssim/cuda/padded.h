// SPDX-License-Identifier: Apache-2.0
// SSIM on the GPU through copies of the images that are padded.
#pragma once

#include "src/ssim/cuda/plan.h"

namespace similis::ssim_internal {

/// Takes what the sliding window takes, but with padding reflect or replicate, reduced to numbers
/// and without masks, through at most 512 MiB of copies.
bool can_pad(const CudaPlan& plan);
void run_padded(CudaPlan& plan);

}  // namespace similis::ssim_internal
