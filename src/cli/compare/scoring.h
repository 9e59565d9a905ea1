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

/// What is measured, and how.
struct Scoring {
  std::vector<Measure> measures;
  /// Whether the measures are the program's choice: one that a pair is too small for is then left
  /// out with a note, where one that was asked for is an error.
  bool by_default = false;
  InputOptions inputs;
  std::optional<MapRequest> map;
  Execution exec;
  Device device;  ///< where the measures run
  int threads = 1;
};

/// Fills in what `report` says of the pairs in `files`, its names and metric settings included.
/// While one pair of pictures is scored the next is read, if there is a second thread. What goes
/// wrong with a pair is printed and added to report.error; the others are scored, and of a video
/// that breaks off the frames before are kept.
void score_pairs(
    const Scoring& scoring, const std::vector<FilePair>& files, Notes& notes, Report& report);

}  // namespace similis::cli
