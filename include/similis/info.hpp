// SPDX-License-Identifier: Apache-2.0
// The SIMD targets, threads and GPUs that this build can use on this machine, and those it uses.
#pragma once

#include <string>
#include <vector>

#include "similis/api.h"
#include "similis/tensor.hpp"

namespace similis {

/// Code for one kind of GPU.
struct GpuBackend {
  DeviceKind kind;
  bool is_compiled = false;  ///< true if this build holds it
  std::string description;   ///< the GPUs that can be used, in words, or why there are none
};

struct Info {
  std::string version;
  std::vector<std::string> simd_targets;  ///< compiled in and supported here, best first
  std::vector<std::string> unsupported_simd_targets;  ///< compiled in, but not for this processor
  std::string simd_target;                            ///< the one in use
  std::string simd_target_reason;                     ///< the reason for it, in words
  int threads = 1;                                    ///< of the built-in pool
  std::vector<GpuBackend> gpu_backends;               ///< of each kind that similis knows
};

/// Throws InvalidArgument if SIMILIS_SIMD_TARGET, SIMILIS_BACKEND or SIMILIS_NUM_THREADS asks for
/// something that is not available.
SIMILIS_API Info info();

}  // namespace similis
