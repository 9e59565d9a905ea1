// SPDX-License-Identifier: Apache-2.0
// SSIMULACRA 2.1 in plain loops over whole planes, step by step as in its definition, to check the
// backends with.
#pragma once

#include <vector>

#include "src/ssimulacra2/ssimulacra2.h"

namespace similis::ssimulacra2_internal {

/// The score of each pair; pictures on the CPU.
std::vector<double> reference_ssimulacra2(
    const Pictures& x, const Pictures& y, Ssimulacra2Mode mode);

}  // namespace similis::ssimulacra2_internal
