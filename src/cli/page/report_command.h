// SPDX-License-Identifier: Apache-2.0
// `similis report`: a page of saved results.
#pragma once

#include <string>
#include <vector>

namespace similis::cli {

struct ReportOptions {
  std::vector<std::string> scores;  ///< JSON or JSON Lines that compare or merge wrote
  std::string output;
};

/// Writes the page, with a section for each file. Throws UsageError if this build cannot make pages
/// or a file is the output; Error, naming the file, if one cannot be read or has no results.
int make_report(const ReportOptions& options);

}  // namespace similis::cli
