// SPDX-License-Identifier: Apache-2.0
// The march for values. Two widths: what a strip loads and does not own is a rim of columns, so
// wide strips waste less, unless the image's width leaves much of the last one empty.
#include <algorithm>

#include "src/ssim/cuda_march_kernel.cuh"

#if !defined(__HIPCC__)

namespace similis::ssim_internal {
namespace {

using Wide = MarchPolicy<128, 8, 3, false>;
using Narrow = MarchPolicy<96, 8, 4, false>;

}  // namespace

MarchShape value_shape(bool wide) {
  return wide ? MarchShape{Wide::kOwned, Wide::kColumns}
              : MarchShape{Narrow::kOwned, Narrow::kColumns};
}

int value_blocks(const March& march, bool wide) {
  return wide ? march_blocks<Wide>(march) : march_blocks<Narrow>(march);
}

void launch_value_march(const March& march, bool wide, int blocks, const Execution& exec) {
  wide ? launch_march<Wide>(march, blocks, exec) : launch_march<Narrow>(march, blocks, exec);
}

}  // namespace similis::ssim_internal

#endif
