// SPDX-License-Identifier: Apache-2.0
// One call of MS-SSIM, as ms_ssim.cc hands it to a backend once everything is checked and resolved.
#pragma once

#include <array>
#include <vector>

#include "similis/ms_ssim.hpp"
#include "src/core/operation.h"
#include "src/ssim/ssim.h"
#include "src/window/halving.h"

namespace similis::ms_ssim_internal {

/// The mean dissimilarity of a level whose weights add up to 0; no other is negative.
inline constexpr double kNoMean = -1;

/// `level` holds what every level shares: images and mask (5-D, of the finest level), window,
/// padding and constants. The call computes bias + term_weight·(1 - MS-SSIM) of each channel that
/// exists, reduced; a mean over none is NaN if bias is not 0, and 0 otherwise.
struct Pass {
  ssim_internal::Pass level;
  bool is_3d = false;           ///< the caller's images have a depth axis, even of 1
  std::vector<double> weights;  ///< finest level first
  Downsample downsample = Downsample::vainf;
  double bias = 0, term_weight = 1;
  Reduction reduction = Reduction::mean;
  TensorView value, upstream, x_gradient, y_gradient;  ///< as in ssim_internal::Pass
};

void ms_ssim_cpu(const Pass& pass, const Execution& exec);
/// On the images' device, queued on exec.queue and not waited for.
void ms_ssim_cuda(const Pass& pass, const Execution& exec);
/// Through Vulkan, on the images' device, or on that of exec.queue if they are on the CPU: the
/// results are then there when it returns. Throws DeviceError for a call that it has no kernels
/// for.
void ms_ssim_vulkan(const Pass& pass, const Execution& exec);

extern const Operation<Pass> kMsSsim;

/// The halving of the axes (z, y, x) of [N,C,D,H,W]; only volumes are halved in depth.
std::array<Halving, 3> halving_of(const Extents& shape, bool is_3d, Downsample rule);

/// The shape of the next coarser level.
Extents coarse_shape(const Extents& shape, const std::array<Halving, 3>& halving);

/// A mask as its images and channels that differ: one of each axis that it is broadcast along.
TensorView own_planes(const TensorView& mask);
/// The mask again as a view of as many images and channels as `like` has.
TensorView broadcast_planes(const TensorView& mask, const TensorView& like);

}  // namespace similis::ms_ssim_internal
