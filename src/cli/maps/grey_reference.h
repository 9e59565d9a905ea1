// SPDX-License-Identifier: Apache-2.0
// The reference as a grey picture: below a map that is drawn over it, and slices of volumes.
#pragma once

#include <utility>

#include "similis/tensor.hpp"
#include "src/cli/inputs/frame_pair.h"

namespace similis::cli {

/// The least and the largest finite value; 0 and 0 if there are none. values: on the CPU.
std::pair<double, double> finite_limits(const TensorView& values);

/// The lightness of the reference from 0 (black) to 1 (white), f32, [1,1,H,W] or of volumes
/// [1,1,D,H,W], dense: the mean of channels, code values by their range, a volume's values by their
/// least and largest; the luma of video. frames: on the CPU.
Tensor grey_reference(const FramePair& frames);

/// The same of any values, of which `least` is black and `largest` white.
Tensor grey(const TensorView& values, double least, double largest);

}  // namespace similis::cli
