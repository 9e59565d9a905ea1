// SPDX-License-Identifier: Apache-2.0
// `similis compare`: scores pictures, videos or volumes against a reference, or those in two
// directories.
#pragma once

#include <string>
#include <vector>

#include "src/cli/inputs/adaptation.h"

namespace similis::cli {

/// The command line as typed, not yet parsed.
struct CompareOptions {
  std::string reference;               ///< a path, or "-" for standard input
  std::string first_distorted;         ///< likewise; apart, since CLI11 splits "[a,b]" in lists
  std::vector<std::string> distorted;  ///< the others
  std::vector<std::string> curves;     ///< NAME=FILE,FILE,…
  std::vector<std::string> metrics;    ///< of -m; empty: default_metrics()
  std::string device = "auto";
  std::string threads;            ///< empty: one per core
  std::string format;             ///< empty: as the name of the output says
  std::string output;             ///< empty: standard output
  std::vector<std::string> maps;  ///< METRIC[@FRAME|@worst]=FILE
  std::string map_max;            ///< a number or "auto"; empty: as each metric says
  bool is_overlay = false, has_no_legend = false;
  std::string not_finite = "error";  ///< or "mask"
  bool is_quiet = false;
  std::string background;             ///< a colour; empty: none
  AdaptationTexts adaptation;         ///< --resize and the like
  std::string frames, every, offset;  ///< empty: all frames
  std::string size, pixel_format;     ///< of raw video; empty: there is none
  std::string fps;                    ///< of raw video and image sequences; empty: not known
  std::string pairs, shard, retries;  ///< a list of pairs; empty: there is none
  bool frames_in_rows = false;
  std::string worst;                                ///< number of worst frames; empty: one
  std::vector<std::string> fail_below, fail_above;  ///< METRIC[.STAT]=VALUE
  std::string report;                               ///< a page; empty: none
  std::string command;                              ///< as typed, for the page
};

/// Writes the results and returns the exit status: 0; 1 if something could not be scored; 3 if a
/// score misses a threshold; 128 + N after signal N. Errors are printed on stderr. Throws
/// UsageError if the options do not fit together, Error if nothing can be scored.
int compare(const CompareOptions& options);

}  // namespace similis::cli
