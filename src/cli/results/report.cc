// SPDX-License-Identifier: Apache-2.0
#include "src/cli/results/report.h"

#include "src/cli/results/statistics.h"

namespace similis::cli {

std::vector<double> scores_of(const ScoredPair& pair, std::size_t name) {
  std::vector<double> scores;
  for (const FrameScores& frame : pair.frames) {
    if (frame.values[name]) scores.push_back(*frame.values[name]);
  }
  return scores;
}

std::vector<double> means_of(const std::vector<ScoredPair>& pairs, std::size_t name) {
  std::vector<double> means;
  for (const ScoredPair& pair : pairs) {
    const std::vector<double> scores = scores_of(pair, name);
    if (!scores.empty()) means.push_back(statistics(scores).mean);
  }
  return means;
}

bool is_moving(const ScoredPair& pair) {
  return pair.samples.chroma.has_value() || pair.counts.reference.has_value();
}

std::vector<double> scores_of(const std::vector<ScoredPair>& pairs, std::size_t name) {
  std::vector<double> scores;
  for (const ScoredPair& pair : pairs) {
    const std::vector<double> own = scores_of(pair, name);
    scores.insert(scores.end(), own.begin(), own.end());
  }
  return scores;
}

}  // namespace similis::cli
