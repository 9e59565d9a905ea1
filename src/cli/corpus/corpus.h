// SPDX-License-Identifier: Apache-2.0
// Scores many pairs of files into one file of results, which the same command continues.
#pragma once

#include <string>
#include <vector>

#include "src/cli/compare/scoring.h"
#include "src/cli/compare/thresholds.h"
#include "src/cli/corpus/pair_list.h"

namespace similis::cli {

struct CorpusOptions {
  std::string output;  ///< a .jsonl file
  Shard shard;
  int retries = 1;              ///< of pairs whose files cannot be opened
  bool frames_in_rows = false;  ///< each frame's scores too
  std::vector<Threshold> thresholds;
};

/// Scores the pairs of this shard that have no row yet, several at a time, each on one thread. Then
/// prints a sentence for each threshold that a row misses, of earlier runs too. Returns the exit
/// status: 0, 1 if a pair failed, 3 if a row misses a threshold, 128 + N after signal N, when all
/// rows at hand are written. Throws as ResultsFile does.
int score_corpus(const Scoring& scoring, const PairList& pairs, const CorpusOptions& options);

}  // namespace similis::cli
