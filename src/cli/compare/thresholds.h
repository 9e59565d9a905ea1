// SPDX-License-Identifier: Apache-2.0
// --fail-below and --fail-above: limits that a pair's scores must keep.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/cli/metrics/metric.h"
#include "src/cli/results/report.h"
#include "src/cli/terminal/json_text.h"

namespace similis::cli {

inline constexpr int kMissedThreshold = 3;  ///< exit status

enum class Limit : std::uint8_t { at_least, at_most };

struct Threshold {
  std::string name;       ///< a measure, for all its numbers, or one of them: ssim, ssim-y
  std::string statistic;  ///< as in JSON: mean, p5, …
  double value = 0;
  Limit limit = Limit::at_least;
};

/// Parses METRIC[.STAT]=VALUE for each text. Throws UsageError, naming the option, if the measures
/// have no such score, or the statistic or the value is none.
std::vector<Threshold> parse_thresholds(const std::string& option,
    const std::vector<std::string>& texts, Limit limit, const std::vector<Measure>& measures);

/// A sentence for each threshold that a pair misses, as one without a score does.
std::vector<std::string> missed_thresholds(
    const std::vector<Threshold>& thresholds, const Report& report);

/// The same for a row of a corpus. A score of null is infinite: no other score of finite inputs is
/// written so.
std::vector<std::string> missed_thresholds(const std::vector<Threshold>& thresholds,
    const std::vector<Measure>& measures, const Json& row);

}  // namespace similis::cli
