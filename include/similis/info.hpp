// SPDX-License-Identifier: Apache-2.0
// What this build of similis can use on this machine, and what it will use.
#pragma once

#include <string>
#include <vector>

#include "similis/api.h"

namespace similis {

struct Info {
  std::string version;
  std::vector<std::string> simd_targets;  ///< compiled in and supported here, best first
  std::vector<std::string> unsupported_simd_targets;  ///< compiled in, but not for this processor
  std::string simd_target;                            ///< the one in use
  std::string simd_target_reason;                     ///< why, in words
  int threads = 1;                                    ///< of the built-in pool
  bool cuda_compiled = false;                         ///< whether GPU code is in this build
  std::string cuda_reason;                            ///< why the GPU is or is not used, in words
};

/// Throws InvalidArgument if SIMILIS_SIMD_TARGET, SIMILIS_BACKEND or SIMILIS_NUM_THREADS asks for
/// what is not there.
SIMILIS_API Info info();

}  // namespace similis
