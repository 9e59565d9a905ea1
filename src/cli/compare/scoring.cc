// SPDX-License-Identifier: Apache-2.0
#include "src/cli/compare/scoring.h"

#include <algorithm>
#include <future>
#include <optional>
#include <utility>

#include "src/cli/compare/pair_scoring.h"
#include "src/cli/terminal/progress.h"
#include "src/core/require.h"

namespace similis::cli {

void score_pairs(
    const Scoring& scoring, const std::vector<FilePair>& files, Notes& notes, Report& report) {
  const auto policy = scoring.threads > 1 ? std::launch::async : std::launch::deferred;
  const auto open = [&](std::size_t i) {
    return std::async(policy, [&scoring, &files, i] {
      return open_media_pair(files[i], scoring.inputs, scoring.threads, scoring.exec);
    });
  };
  std::vector<PairScores> all;
  const bool is_single = files.size() == 1;
  std::optional<Interruption::Keep> keep;
  if (!is_single) keep.emplace(scoring.interruption);
  Progress progress("pairs", static_cast<std::int64_t>(files.size()));
  std::future<MediaPair> next = files.empty() ? std::future<MediaPair>() : open(0);
  for (std::size_t i = 0; i < files.size(); ++i) {
    PairScores scores{.pair = {.files = files[i]}};
    try {
      require_not_interrupted(scoring);
      std::future<MediaPair> current = std::move(next);
      if (i + 1 < files.size()) next = open(i + 1);
      score_media(scoring, current.get(), is_single, notes, scores);
    } catch (const Error& error) {
      progress.clear();
      record_error(error.what(), scores, report);
    }
    if (!scores.frames.empty()) all.push_back(std::move(scores));
    if (is_interrupted(scoring)) break;
    progress.step();
  }
  progress.clear();
  lay_out(scoring.measures, std::move(all), report);
}

Report score_one_pair(const Scoring& scoring, const FilePair& files, Notes& notes) {
  Report report;
  report.compared = Compared::directories;
  PairScores scores{.pair = {.files = files}};
  try {
    const MediaPair media = open_media_pair(files, scoring.inputs, scoring.threads, scoring.exec);
    score_media(scoring, media, false, notes, scores);
    const bool has_scores = std::any_of(scores.frames.begin(), scores.frames.end(),
        [](const ScoredFrame& frame) { return !frame.values.empty(); });
    require(has_scores, "none of the default metrics can score {}; choose metrics with -m",
        files.distorted);
  } catch (const Error& error) {
    report.error = error.what();
    return report;
  }
  std::vector<PairScores> all;
  all.push_back(std::move(scores));
  lay_out(scoring.measures, std::move(all), report);
  return report;
}

}  // namespace similis::cli
