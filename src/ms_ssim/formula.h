// SPDX-License-Identifier: Apache-2.0
// MS-SSIM of one channel from the mean dissimilarities m of its levels, and its derivatives.
//   MS-SSIM = Π max(0, 1 - m_l)^w_l
// In logarithms 1 - MS-SSIM = -expm1(Σ w_l·log1p(-m_l)), which keeps its relative precision near 0.
// A level whose mean is not positive makes the product 0 and every derivative 0; a weight of 0
// leaves its level out.
#pragma once

#include <cmath>

#include "src/core/host_device.h"

namespace similis::ms_ssim_internal {

struct Product {
  double dissimilarity;  // 1 - MS-SSIM
  bool is_zero;          // some level's mean is not positive
};

SIMILIS_HOST_DEVICE Product product(const double* means, const double* weights, int levels) {
  double logarithm = 0;
  bool is_zero = false;
  for (int level = 0; level < levels; ++level) {
    if (weights[level] == 0) continue;
    if (means[level] >= 1) {
      is_zero = true;
    } else {
      logarithm += weights[level] * log1p(-means[level]);  // NaN stays
    }
  }
  return {is_zero ? 1 : -expm1(logarithm), is_zero};
}

/// d(1 - MS-SSIM)/dm_l.
SIMILIS_HOST_DEVICE double slope(const Product& value, double mean, double weight) {
  if (value.is_zero || weight == 0) return 0;
  return weight * (1 - value.dissimilarity) / (1 - mean);
}

}  // namespace similis::ms_ssim_internal
