// SPDX-License-Identifier: Apache-2.0
// Opens pairs of files one after the other and runs the measures on each.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "src/cli/compare/report.h"
#include "src/cli/inputs/media_pair.h"
#include "src/cli/metrics/metric.h"
#include "src/cli/metrics/metric_request.h"
#include "src/cli/terminal/notes.h"

namespace similis::cli {

/// The measures to run, and how to run them.
struct Scoring {
  std::vector<Measure> measures;
  /// True if -m was not given: a measure that needs a larger picture is then skipped with a note
  /// instead of failing.
  bool by_default = false;
  InputOptions inputs;
  std::optional<MapRequest> map;
  Execution exec;
  Device device;  ///< where the measures run
  int threads = 1;
};

/// Scores the pairs in `files` and fills in their part of `report`, names and metric settings
/// included. While one pair of pictures is scored the next is read, if there is a second thread. An
/// error of a pair is printed and added to report.error, and the other pairs are scored; if a video
/// is cut off, the scores of its frames before the cut are kept.
void score_pairs(
    const Scoring& scoring, const std::vector<FilePair>& files, Notes& notes, Report& report);

}  // namespace similis::cli
