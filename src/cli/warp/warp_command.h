// SPDX-License-Identifier: Apache-2.0
// `similis warp`: resamples a volume on the grid of another, through transforms of ITK and ANTs.
#pragma once

#include <string>
#include <vector>

namespace similis::cli {

/// The command line as typed, not yet parsed.
struct WarpOptions {
  std::string image, reference;  ///< paths, or "-" for standard input
  std::string input;             ///< --input, which stands for `image`
  std::string dimensions;        ///< 2 or 3; empty: any
  std::vector<std::string>
      transforms;  ///< paths, or [PATH,1] for an inverse; the first comes first
  std::string output;
  std::string mode = "linear";
  std::string padding = "zeros";
  std::string background;  ///< a number; empty: 0
  std::string device = "auto";
  std::string threads;  ///< empty: one per core
};

/// Writes the warped volume and, to standard output, a summary of it. Throws UsageError if the
/// options do not fit together, Error if something cannot be read, warped or written.
int warp(const WarpOptions& options);

}  // namespace similis::cli
