// SPDX-License-Identifier: Apache-2.0
// Linear stages: Adam on the parameters of a linear map, all in millimetres.
#pragma once

#include <functional>
#include <vector>

#include "similis/register.hpp"
#include "src/registration/levels.h"

namespace similis::registration_internal {

/// Called after each iteration; false ends the registration.
using Watch = std::function<bool(const RegisterProgress&)>;

/// A before the first stage, where t and L(θ) are 0 and 1: p ↦ L(θ)·start.linear·(p - c) +
/// start(c) + t.
struct LinearResult {
  Map map;
  std::vector<RegisterStageReport> stages;
  bool was_stopped = false;
};

/// Runs the stages, none of them deformable, in their order from the start of the options.
LinearResult run_linear(const Image& fixed, const Image& moving,
    const std::vector<RegisterStage>& stages, const RegisterOptions& options, const Watch& watch,
    const Execution& exec);

/// Share of the fixed voxels that count and that the map lays on voxels of moving that count.
double overlap(const Image& fixed, const Image& moving, const Map& map, const Execution& exec);

}  // namespace similis::registration_internal
