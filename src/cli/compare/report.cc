// SPDX-License-Identifier: Apache-2.0
#include "src/cli/compare/report.h"

namespace similis::cli {

std::vector<double> scores_of(const std::vector<ScoredPair>& pairs, std::size_t name) {
  std::vector<double> scores;
  for (const ScoredPair& pair : pairs) {
    for (const FrameScores& frame : pair.frames) {
      if (frame.values[name]) scores.push_back(*frame.values[name]);
    }
  }
  return scores;
}

}  // namespace similis::cli
