// SPDX-License-Identifier: Apache-2.0
// Mountains over a lake: smooth sky, fine rock and forest, ripples.
#pragma once

#include "demo/vector.h"

namespace demo {

/// Linear light through one point of the picture: u from -1.5 at the left to 1.5, v from -1 at the
/// bottom to 1.
Vector landscape(double u, double v);

}  // namespace demo
