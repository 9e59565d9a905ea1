// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "similis/execution.hpp"

namespace similis {

/// The number of threads that loops on exec's runner use at most: 1 only if it is certain that they
/// take one index after another. A guess of 2 or more for runners of the caller.
int most_threads(const Execution& exec);

}  // namespace similis
