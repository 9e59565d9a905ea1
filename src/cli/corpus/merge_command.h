// SPDX-License-Identifier: Apache-2.0
// `similis merge`: puts the results of shards together.
#pragma once

#include <string>
#include <vector>

namespace similis::cli {

struct MergeOptions {
  std::vector<std::string> parts;  ///< files of `compare --pairs … -o PART`
  std::string pairs;               ///< the list
  std::string output;              ///< .jsonl, .json or .csv; empty: standard output, JSON Lines
};

/// Writes one row for each pair of the list, in its order, complete or not at all. Returns 0, or 1
/// after saying how many pairs are missing. Throws UsageError if a part is not a file of results,
/// parts have different settings, or rows of one pair differ.
int merge(const MergeOptions& options);

}  // namespace similis::cli
