// SPDX-License-Identifier: Apache-2.0
// The backends that a test compares with its reference: every SIMD target that this processor runs,
// and the GPU if there is one and the operation has kernels for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/core/backend.h"
#include "src/gpu/device.h"

namespace similis::test {

struct Backend {
  std::string name;
  std::int64_t simd_target = 0;
  bool on_gpu = false;
};

enum class Gpu : std::uint8_t { left_out, included };

inline std::vector<Backend> backends(Gpu gpu = Gpu::left_out) {
  std::vector<Backend> result;
  for (const std::int64_t target : simd_targets()) {
    result.push_back({.name = simd_target_name(target), .simd_target = target});
  }
  if (gpu == Gpu::included && gpu::device_count(DeviceKind::cuda) > 0) {
    result.push_back({.name = "CUDA", .on_gpu = true});
  }
  return result;
}

/// True if a test must copy its arrays to the GPU and back.
inline bool& runs_on_gpu() {
  static bool chosen = false;
  return chosen;
}

/// Operations run on this backend as long as it lives.
class ScopedBackend {
 public:
  explicit ScopedBackend(const Backend& backend) {
    force_simd_target(backend.simd_target);
    runs_on_gpu() = backend.on_gpu;
  }
  ~ScopedBackend() {
    force_simd_target(0);
    runs_on_gpu() = false;
  }
  ScopedBackend(const ScopedBackend&) = delete;
  ScopedBackend& operator=(const ScopedBackend&) = delete;
};

}  // namespace similis::test
