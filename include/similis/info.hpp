// SPDX-License-Identifier: Apache-2.0
// What this build of similis can use on this machine, and what it will use.
#pragma once

#include <string>
#include <vector>

#include "similis/api.h"
#include "similis/tensor.hpp"

namespace similis {

/// Code for one kind of GPU.
struct GpuBackend {
  DeviceKind kind;
  bool is_compiled = false;  ///< whether this build holds it
  std::string description;   ///< the GPUs that can be used, in words, or why there are none
};

struct Info {
  std::string version;
  std::vector<std::string> simd_targets;  ///< compiled in and supported here, best first
  std::vector<std::string> unsupported_simd_targets;  ///< compiled in, but not for this processor
  std::string simd_target;                            ///< the one in use
  std::string simd_target_reason;                     ///< why, in words
  int threads = 1;                                    ///< of the built-in pool
  std::vector<GpuBackend> gpu_backends;               ///< of each kind that similis knows
};

/// Throws InvalidArgument if SIMILIS_SIMD_TARGET, SIMILIS_BACKEND or SIMILIS_NUM_THREADS asks for
/// what is not there.
SIMILIS_API Info info();

}  // namespace similis
