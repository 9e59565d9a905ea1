// SPDX-License-Identifier: Apache-2.0
// A registration in numbers, as report.json and Python have it.
#pragma once

#include <nlohmann/json.hpp>

#include "similis/register.hpp"

namespace similis::registration_internal {

/// As RegisterOptions has them; empty where there are none.
struct ReportMasks {
  TensorView fixed, moving;
};

struct ReportedSimilarity {
  RegisterSimilarity before, affine, after;
};

/// Takes only voxels in fixed's mask that a map leads to voxels of moving's mask. before: the
/// images where the world has them; affine: moved by A alone.
ReportedSimilarity reported_similarity(const Registration& registration, const Volume& fixed,
    const Volume& moving, const ReportMasks& masks, const Execution& exec);

/// similarity: null leaves it out. jacobian: that of registration_jacobian(); empty leaves it out.
nlohmann::ordered_json report_of(const Registration& registration, const RegisterOptions& options,
    const ReportedSimilarity* similarity, const Tensor& jacobian);

}  // namespace similis::registration_internal
