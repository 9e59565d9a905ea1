// SPDX-License-Identifier: Apache-2.0
// Errors of pixels by their definitions, slowly and in double, to check the backends with.
#pragma once

#include <vector>

#include "similis/pixel_error.hpp"
#include "src/pixel_error/pixel_error.h"

namespace similis::pixel_error_internal {

struct Reference {
  Extents shape;  ///< the value's
  std::vector<double> value;
  std::vector<double> x_gradient, y_gradient;  ///< gradients of Σ upstream·value; shaped as x
};

/// Arrays on the CPU; an empty upstream is 1.
Reference reference_pixel_error(Error error, const TensorView& x, const TensorView& y,
    const PixelErrorOptions& options = {}, const TensorView& upstream = {});

}  // namespace similis::pixel_error_internal
