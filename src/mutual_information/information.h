// SPDX-License-Identifier: Apache-2.0
// The mutual information of a joint histogram, on the CPU.
#pragma once

#include <vector>

#include "src/mutual_information/mutual_information.h"

namespace similis::mutual_information_internal {

struct Information {
  double value = 0;           ///< without meaning if no voxel is counted
  double count = 0;           ///< voxels in the histogram
  std::vector<double> table;  ///< ∂value/∂p_ab up to a constant; [bins of x][bins of y]
};

/// histogram: of one result; left as it is.
Information information_of(const Pass& pass, const double* histogram, bool with_table);

}  // namespace similis::mutual_information_internal
