// SPDX-License-Identifier: Apache-2.0
// `similis compare`: scores two pictures, videos or volumes, or those in two directories.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace similis::cli {

/// The command line as typed, not yet parsed.
struct CompareOptions {
  std::string reference, distorted;  ///< a path, or "-" for standard input
  std::vector<std::string> metrics;  ///< of -m; empty: default_metrics()
  std::string device = "auto";
  std::string threads;  ///< empty: one per core
  std::string format = "table";
  std::string output;                 ///< empty: standard output
  std::string map;                    ///< METRIC=FILE; empty: none
  std::string background;             ///< a colour; empty: none
  std::string frames, every, offset;  ///< empty: all frames
  std::string size, pixel_format;     ///< of raw video; empty: there is none
};

/// Writes the results and returns the exit status: 0, or 1 if something could not be scored;
/// errors are printed on stderr. Throws UsageError if the options do not fit together, Error if
/// nothing can be scored.
int compare(const CompareOptions& options);

}  // namespace similis::cli
