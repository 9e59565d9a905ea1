// SPDX-License-Identifier: Apache-2.0
// `similis warp`: a volume as it is seen from another's grid, through transforms of ITK and ANTs.
#pragma once

#include <string>
#include <vector>

namespace similis::cli {

/// What was typed, unread.
struct WarpOptions {
  std::string image, reference;         ///< paths, or "-" for standard input
  std::vector<std::string> transforms;  ///< paths, or [PATH,1] for an inverse; the last comes first
  std::string output;
  std::string mode = "linear";
  std::string padding = "zeros";
  std::string background;  ///< a number; empty: 0
  std::string device = "auto";
  std::string threads;  ///< empty: one per core
};

/// Writes the warped volume and, to standard output, what it is. Throws UsageError if the options
/// do not fit together, Error if something cannot be read, warped or written.
int warp(const WarpOptions& options);

}  // namespace similis::cli
