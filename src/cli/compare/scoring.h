// SPDX-License-Identifier: Apache-2.0
// Opens pairs of files and runs the measures on each.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/cli/compare/scores.h"
#include "src/cli/inputs/media_pair.h"
#include "src/cli/maps/heat_map.h"
#include "src/cli/metrics/metric.h"
#include "src/cli/metrics/metric_request.h"
#include "src/cli/page/page_images.h"
#include "src/cli/results/report.h"
#include "src/cli/terminal/interruption.h"
#include "src/cli/terminal/notes.h"

namespace similis::cli {

/// The measures to run, and how to run them.
struct Scoring {
  std::vector<Measure> measures;
  /// True if -m was not given: a measure that needs a larger picture is then skipped with a note
  /// instead of failing.
  bool by_default = false;
  InputOptions inputs;
  /// Every so many of the frames that are read are shown, from the first on; those between are
  /// read for measures that look at the frame before.
  std::int64_t shown_every = 1;
  /// The selection as it was asked for.
  FrameSelection shown() const {
    FrameSelection selection = inputs.selection;
    selection.every *= shown_every;
    return selection;
  }
  std::vector<MapRequest> maps;
  MapStyle map_style;
  bool are_maps_in_folders = false;  ///< of directories and encodes
  PageImages* images = nullptr;      ///< gets what --report shows of a single pair; null: nothing
  Execution exec;
  Device device;  ///< where the measures run
  int threads = 1;
  Interruption* interruption = nullptr;  ///< signals that end scoring early; null: none is caught
  /// Called with each frame of a single pair when it is scored; empty if nobody waits for it.
  std::function<void(const PairScores& so_far)> on_frame;
};

/// Scores the pairs in `files` and fills in their part of `report`, names and metric settings
/// included. While one pair of pictures is scored the next is read, if there is a second thread. An
/// error of a pair is printed and added to report.error, and the other pairs are scored; if a video
/// is cut off, the scores of its frames before the cut are kept. A signal is such an error, and
/// the last.
void score_pairs(
    const Scoring& scoring, const std::vector<FilePair>& files, Notes& notes, Report& report);

/// Scores one pair on the calling thread. Its error is in the report, which then has no pair;
/// nothing is printed.
Report score_one_pair(const Scoring& scoring, const FilePair& files, Notes& notes);

}  // namespace similis::cli
