// SPDX-License-Identifier: Apache-2.0
// --nan mask: leaves out what is not finite.
#pragma once

#include "similis/execution.hpp"
#include "src/cli/inputs/frame_pair.h"

namespace similis::cli {

/// Sets the pair's mask and left_out from both its sides, which are f32 or f64 on the CPU. Throws
/// InvalidArgument if nothing would be left.
void mask_not_finite(FramePair& pair, const Execution& exec);

}  // namespace similis::cli
