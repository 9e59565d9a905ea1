// SPDX-License-Identifier: Apache-2.0
// The SIMD targets, threads and GPUs that this build can use on this machine, and those it uses.
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
  std::string simd_target_reason;                     ///< the reason for it, in words
  int threads = 1;                                    ///< of the built-in pool
  bool cuda_compiled = false;                         ///< GPU code is in this build
  std::string cuda_reason;  ///< the reason that the GPU is used or not, in words
};

/// Throws InvalidArgument if SIMILIS_SIMD_TARGET, SIMILIS_BACKEND or SIMILIS_NUM_THREADS asks for
/// something that is not available.
SIMILIS_API Info info();

}  // namespace similis
