// SPDX-License-Identifier: Apache-2.0
// The scores of pairs as they are computed, and their way into the columns of a report.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "src/cli/metrics/metric.h"
#include "src/cli/results/report.h"

namespace similis::cli {

inline constexpr int kWholeFrame = -1;  ///< the plane of a picture's or a whole frame's score

/// Identifies a number of the results: its measure, its plane and its part of the measure.
struct ScoreKey {
  std::size_t measure = 0;
  int plane = kWholeFrame;
  std::size_t part = 0;
  friend auto operator<=>(const ScoreKey&, const ScoreKey&) = default;
};
using FrameValues = std::vector<std::pair<ScoreKey, double>>;

struct ScoredFrame {
  std::int64_t number;
  FrameValues values;
};

/// The settings of each measure that has scored a pair.
using MeasureSettings = std::map<std::size_t, Settings>;

/// The scores of one pair. Columns and names are known only when all pairs are scored.
struct PairScores {
  ScoredPair pair;
  MeasureSettings settings;
  std::vector<ScoredFrame> frames;
};

/// Fills in the report's names, settings, common kind of samples, and pairs.
void lay_out(const std::vector<Measure>& measures, std::vector<PairScores> all, Report& report);

}  // namespace similis::cli
