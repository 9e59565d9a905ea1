// SPDX-License-Identifier: Apache-2.0
// Glass, copper, marble, glazed stripes and beads on a wooden table beside a window: hard edges,
// fine grain, reflections and soft shadows.
#pragma once

#include "demo/noise.h"

namespace demo {

/// Linear light through one point of the picture: u from -1.5 at the left to 1.5, v from -1 at the
/// bottom to 1. One sample of a path tracer: average many.
Vector still_life(double u, double v, Random& random);

}  // namespace demo
