// SPDX-License-Identifier: Apache-2.0
// Mutual information by its definition, slowly and in double, to check the backends with.
#pragma once

#include <vector>

#include "similis/mutual_information.hpp"

namespace similis::mutual_information_internal {

struct Reference {
  std::vector<double> histogram;               ///< [N,C,bins,bins]
  std::vector<double> values;                  ///< one for each channel of each image
  std::vector<double> value;                   ///< reduced
  std::vector<double> x_gradient, y_gradient;  ///< gradients of Σ upstream·value; shaped as x
};

/// Arrays on the CPU; an empty upstream is 1. All voxels count in all bins.
Reference reference_mutual_information(const TensorView& x, const TensorView& y,
    const MutualInformationOptions& options, const TensorView& upstream = {});

}  // namespace similis::mutual_information_internal
