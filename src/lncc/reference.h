// SPDX-License-Identifier: Apache-2.0
// LNCC by its definition, slowly and in double, to check the backends with.
#pragma once

#include <vector>

#include "similis/lncc.hpp"
#include "src/lncc/lncc.h"

namespace similis::lncc_internal {

struct Reference {
  Extents shape;  ///< the value's
  std::vector<double> value;
  std::vector<double> x_gradient, y_gradient;  ///< gradients of Σ upstream·value; shaped as x
};

/// The results of lncc_into() for arrays on the CPU. It reads the weight and the upstream gradient
/// of the request, not its views of results. Checks nothing.
Reference reference_lncc(const TensorView& x, const TensorView& y, const LnccRequest& request = {},
    const LnccOptions& options = {});

}  // namespace similis::lncc_internal
