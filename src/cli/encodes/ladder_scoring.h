// SPDX-License-Identifier: Apache-2.0
// Scores many encodes against one reference.
#pragma once

#include <string>
#include <vector>

#include "src/cli/compare/scoring.h"

namespace similis::cli {

/// The reference is read once; videos and clips of pictures are walked frame by frame in step.
/// Errors and signals are treated as score_pairs() does.
void score_encodes(const Scoring& scoring, const std::string& reference,
    const std::vector<std::string>& encodes, Notes& notes, Report& report);

}  // namespace similis::cli
