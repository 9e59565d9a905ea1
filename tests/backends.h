// SPDX-License-Identifier: Apache-2.0
// What a test compares with its reference: every SIMD target that this processor runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/core/backend.h"

namespace similis::test {

struct Backend {
  std::string name;
  std::int64_t simd_target = 0;
};

inline std::vector<Backend> backends() {
  std::vector<Backend> result;
  for (const std::int64_t target : simd_targets()) {
    result.push_back({.name = simd_target_name(target), .simd_target = target});
  }
  return result;
}

/// Operations run on this backend as long as it lives.
class Chosen {
 public:
  explicit Chosen(const Backend& backend) { force_simd_target(backend.simd_target); }
  ~Chosen() { force_simd_target(0); }
  Chosen(const Chosen&) = delete;
  Chosen& operator=(const Chosen&) = delete;
};

}  // namespace similis::test
