// SPDX-License-Identifier: Apache-2.0
// Statistics of many scores.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "src/cli/metrics/pooling.h"

namespace similis::cli {

struct Statistics {
  double mean, min, max;
  double stdev;  ///< of the population
  double median;
  double harmonic_mean;               ///< n / Σ 1/(s + 1) - 1
  double p1, p5, p10, p25, p75, p95;  ///< percentiles, interpolated linearly

  /// The score that the worst twentieth of the frames do not pass: p95 of errors, else p5.
  double worst_twentieth(bool is_error) const { return is_error ? p95 : p5; }

  /// Name and value in the order of the results' documents.
  std::array<std::pair<const char*, double>, 12> named() const;
};

/// NaN throughout if there are no scores. Scores may be infinite, and so may the results. `pooling`
/// concerns the mean alone.
Statistics statistics(std::vector<double> scores, Pooling pooling = Pooling::mean);

}  // namespace similis::cli
