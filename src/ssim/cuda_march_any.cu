// SPDX-License-Identifier: Apache-2.0
// The march over images of any strides and dtype, which threads load.
#include "src/ssim/cuda_march_kernel.cuh"

#if !defined(__HIPCC__)

namespace similis::ssim_internal {

MarchVariant march_of_any(MarchKind kind) {
  using Pairs = AnyPictures;
  return kind.gradient ? variant<Pairs, true, Scope::all>(kind.wide)
                       : variant<Pairs, false, Scope::all>(kind.wide);
}

}  // namespace similis::ssim_internal

#endif
