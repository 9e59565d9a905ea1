// SPDX-License-Identifier: Apache-2.0
// A map of a volume as one picture: its middle slices across z, y and x, side by side.
#pragma once

#include "similis/tensor.hpp"

namespace similis::cli {

/// [1,C,D,H,W] on the CPU becomes [1,C,max(H,D),W+W+H] and two gaps: the slice across z with x to
/// the right and y upwards, that across y with x and z, that across x with y and z. Any other map
/// is returned as it is. Pixels between slices are `background`.
Tensor middle_slices(const Tensor& map, double background);

}  // namespace similis::cli
