// SPDX-License-Identifier: Apache-2.0
#include "src/cli/results/report.h"

namespace similis::cli {
namespace {

void add_scores(const ScoredPair& pair, std::size_t name, std::vector<double>& scores) {
  for (const FrameScores& frame : pair.frames) {
    if (frame.values[name]) scores.push_back(*frame.values[name]);
  }
}

}  // namespace

Statistics statistics_of(const Report& report, const ScoredPair& pair, std::size_t name) {
  std::vector<double> scores;
  add_scores(pair, name, scores);
  return statistics(std::move(scores), report.kinds[name].pooling);
}

Statistics statistics_of_frames(const Report& report, std::size_t name) {
  std::vector<double> scores;
  for (const ScoredPair& pair : report.pairs) add_scores(pair, name, scores);
  return statistics(std::move(scores), report.kinds[name].pooling);
}

Statistics statistics_of_pairs(const Report& report, std::size_t name) {
  std::vector<double> means;
  for (const ScoredPair& pair : report.pairs) {
    std::vector<double> scores;
    add_scores(pair, name, scores);
    if (scores.empty()) continue;
    means.push_back(statistics(std::move(scores), report.kinds[name].pooling).mean);
  }
  return statistics(std::move(means));
}

bool is_moving(const ScoredPair& pair) {
  return pair.samples.chroma.has_value() || pair.counts.reference.has_value();
}

}  // namespace similis::cli
