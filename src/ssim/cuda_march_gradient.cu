// SPDX-License-Identifier: Apache-2.0
// The march for values and gradients. Two widths: what a strip loads and does not own is a rim of
// columns, so wide strips waste less, unless the image's width leaves much of the last one empty.
#include <algorithm>

#include "src/ssim/cuda_march_kernel.cuh"

#if !defined(__HIPCC__)

namespace similis::ssim_internal {
namespace {

using Wide = MarchPolicy<256, 4, 1, true>;
using Narrow = MarchPolicy<128, 4, 2, true>;

}  // namespace

MarchShape gradient_shape(bool wide) {
  return wide ? MarchShape{Wide::kOwned, Wide::kColumns}
              : MarchShape{Narrow::kOwned, Narrow::kColumns};
}

int gradient_blocks(const March& march, bool wide) {
  return wide ? march_blocks<Wide>(march) : march_blocks<Narrow>(march);
}

void launch_gradient_march(const March& march, bool wide, int blocks, const Execution& exec) {
  wide ? launch_march<Wide>(march, blocks, exec) : launch_march<Narrow>(march, blocks, exec);
}

}  // namespace similis::ssim_internal

#endif
