// SPDX-License-Identifier: Apache-2.0
// The maps at which linear stages begin.
#pragma once

#include <vector>

#include "similis/register.hpp"
#include "src/registration/levels.h"

namespace similis::registration_internal {

/// A map, and a turn that follows it about the place of the fixed centre of mass.
struct Start {
  Map map;
  Point turn = {0, 0, 0};  // radians
};

/// Returns the starts that the options ask for, of which RegisterStart::automatic has several.
std::vector<Start> starts_of(const Image& fixed, const Image& moving,
    const RegisterOptions& options, bool may_turn, const Execution& exec);

}  // namespace similis::registration_internal
