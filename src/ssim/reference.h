// SPDX-License-Identifier: Apache-2.0
// SSIM by its definition, slowly and in double: what the backends are checked with.
#pragma once

#include <vector>

#include "similis/ssim.hpp"
#include "src/ssim/ssim.h"

namespace similis::ssim_internal {

struct Reference {
  Extents shape;  ///< of the value
  std::vector<double> value;
  std::vector<double> x_gradient, y_gradient;  ///< of Σ upstream·value; shaped as the images
};

/// What ssim_into() computes from arrays on the CPU. Of the request it takes the form, the weights
/// and the upstream gradient; where results go is not its matter. Checks nothing.
Reference reference_ssim(const TensorView& x, const TensorView& y, const SsimRequest& request = {},
    const SsimOptions& options = {}, Term term = Term::ssim);

}  // namespace similis::ssim_internal
