// SPDX-License-Identifier: Apache-2.0
// `similis bench`: measures the speed of the metrics on this machine, on noise.
#pragma once

#include <string>
#include <vector>

namespace similis::cli {

/// The command line as typed, not yet parsed.
struct BenchOptions {
  std::vector<std::string> metrics;  ///< of -m; empty: all there are
  std::string size = "1920x1080";    ///< WxH of pictures, WxHxD of volumes
  std::string device = "auto";
  std::string threads;  ///< empty: one per core
  std::string seconds = "1";
  std::string format = "table";
  std::string output;  ///< empty: standard output
};

/// Writes the times and returns 0. A metric that cannot run is skipped with a note; if -m
/// names it, it is an Error before anything is measured. Throws UsageError if an option is wrong.
int bench(const BenchOptions& options);

}  // namespace similis::cli
