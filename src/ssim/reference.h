// SPDX-License-Identifier: Apache-2.0
// SSIM by its definition, slowly and in double, to check the backends with.
#pragma once

#include <vector>

#include "similis/ssim.hpp"
#include "src/ssim/ssim.h"

namespace similis::ssim_internal {

struct Reference {
  Extents shape;  ///< the value's
  std::vector<double> value;
  std::vector<double> x_gradient, y_gradient;  ///< gradients of Σ upstream·value; shaped as x
};

/// The results of ssim_into() for arrays on the CPU. It reads the form, the weights and the
/// upstream gradient of the request, not its views of results. Checks nothing.
Reference reference_ssim(const TensorView& x, const TensorView& y, const SsimRequest& request = {},
    const SsimOptions& options = {}, Term term = Term::ssim);

}  // namespace similis::ssim_internal
