// SPDX-License-Identifier: Apache-2.0
// The curves of --curve against each other.
#pragma once

#include <string>
#include <vector>

#include "src/cli/encodes/bd_rate.h"
#include "src/cli/results/report.h"

namespace similis::cli {

/// One curve against the first, in one of the report's names.
struct CurveDifference {
  std::string curve, name;
  BdDifference difference;
};

/// Each curve but the first, in each name that all its files have been scored in.
std::vector<CurveDifference> curve_differences(const Report& report);

/// Parses NAME=FILE,FILE,… of --curve. Throws UsageError, in one line, if a name is missing or
/// given twice or a curve has fewer than four files.
std::vector<Curve> parse_curves(const std::vector<std::string>& texts);

}  // namespace similis::cli
