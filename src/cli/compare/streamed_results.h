// SPDX-License-Identifier: Apache-2.0
// The frames of a single pair, written as they are scored: csv row by row, and JSON Lines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/cli/compare/scores.h"
#include "src/cli/terminal/growing_output.h"

namespace similis::cli {

class StreamedResults {
 public:
  enum class Form : std::uint8_t { csv, json_lines };

  /// `report` has what is known before the first frame: device and selection.
  StreamedResults(Form form, const std::string& path, const std::vector<Measure>& measures,
      const Report& report);

  /// Writes the last frame of the scores so far; before the first, the head.
  void add(const PairScores& so_far);

  /// Writes the summary; the file gets its name unless the report has an error. Returns
  /// PATH.partial if that is where the results stay.
  std::string finish(const Report& report);

 private:
  Form form_;
  GrowingOutput output_;
  const std::vector<Measure>& measures_;
  Report head_;  // with the columns, once a frame is scored
};

}  // namespace similis::cli
