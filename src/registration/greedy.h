// SPDX-License-Identifier: Apache-2.0
// The greedy deformable stage.
#pragma once

#include "src/registration/linear.h"

namespace similis::registration_internal {

/// The numbers of the deformable stage, with the library's where the caller left them open.
struct GreedySettings {
  double fluid = 0, elastic = 0;
  std::vector<int> levels, iterations;
};
GreedySettings greedy_settings(const RegisterOptions& options, const Grid& grid);

struct GreedyResult {
  Tensor u;  ///< in voxels of the fixed grid, f32, dense
  RegisterStageReport report;
  std::int64_t repairs = 0;
  double repaired_share = 0;
  double min_jacobian = 1;
  GreedySettings settings;
};

GreedyResult run_greedy(const Image& fixed, const Image& moving, const Map& affine,
    const RegisterOptions& options, const Watch& watch, const Execution& exec);

}  // namespace similis::registration_internal
