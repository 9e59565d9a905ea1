// SPDX-License-Identifier: Apache-2.0
// LNCC by its definition, slowly and in double: what the backends are checked with.
#pragma once

#include <vector>

#include "similis/lncc.hpp"
#include "src/lncc/lncc.h"

namespace similis::lncc_internal {

struct Reference {
  Extents shape;  ///< of the value
  std::vector<double> value;
  std::vector<double> x_gradient, y_gradient;  ///< of Σ upstream·value; shaped as the images
};

/// What lncc_into() computes from arrays on the CPU. Of the request it takes the weight and the
/// upstream gradient; where results go is not its matter. Checks nothing.
Reference reference_lncc(const TensorView& x, const TensorView& y, const LnccRequest& request = {},
    const LnccOptions& options = {});

}  // namespace similis::lncc_internal
