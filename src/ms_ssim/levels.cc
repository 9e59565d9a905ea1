// SPDX-License-Identifier: Apache-2.0
// The shapes of MS-SSIM's levels.
#include "src/ms_ssim/ms_ssim.h"

namespace similis::ms_ssim_internal {

std::array<Halving, 3> halving_of(const Extents& shape, bool is_3d, Downsample rule) {
  const bool any_odd = (is_3d && shape[2] % 2 != 0) || shape[3] % 2 != 0 || shape[4] % 2 != 0;
  return {is_3d ? Halving(shape[2], rule, any_odd) : Halving::none(),
      Halving(shape[3], rule, any_odd), Halving(shape[4], rule, any_odd)};
}

Extents coarse_shape(const Extents& shape, const std::array<Halving, 3>& halving) {
  return {shape[0], shape[1], halving[0].coarse_extent(), halving[1].coarse_extent(),
      halving[2].coarse_extent()};
}

TensorView own_planes(const TensorView& mask) {
  TensorView own = mask;
  for (const int axis : {0, 1}) {
    if (mask.strides[axis] == 0) own.shape[axis] = 1;
  }
  return own;
}

TensorView broadcast_planes(const TensorView& mask, const TensorView& like) {
  TensorView broadcast = mask;
  for (const int axis : {0, 1}) {
    if (mask.shape[axis] == 1) broadcast.strides[axis] = 0;
    broadcast.shape[axis] = like.shape[axis];
  }
  return broadcast;
}

}  // namespace similis::ms_ssim_internal
