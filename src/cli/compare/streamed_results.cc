// SPDX-License-Identifier: Apache-2.0
#include "src/cli/compare/streamed_results.h"

#include <utility>

#include "src/cli/terminal/json_text.h"

namespace similis::cli {

StreamedResults::StreamedResults(
    Form form, const std::string& path, const std::vector<Measure>& measures, const Report& report)
    : form_(form), output_(path), measures_(measures), head_(report) {}

void StreamedResults::add(const PairScores& so_far) {
  PairScores last{.pair = so_far.pair, .settings = so_far.settings, .frames = {}};
  last.frames.push_back(so_far.frames.back());
  Report row;
  row.device = head_.device;
  row.selection = head_.selection;
  lay_out(measures_, {std::move(last)}, row);
  const ScoredPair& pair = row.pairs.front();
  if (!output_.has_begun()) {
    output_.write(form_ == Form::csv ? csv_header(row) : json_line(head_document(row)));
  }
  const FrameScores& frame = pair.frames.front();
  output_.write(form_ == Form::csv ? csv_line(row, pair, frame)
                                   : json_line(frame_document(row.names, pair, frame)));
}

std::string StreamedResults::finish(const Report& report) {
  if (report.pairs.empty()) return {};
  if (form_ == Form::json_lines) output_.write(jsonl_summary(report));
  if (report.error.empty()) output_.keep();
  return output_.partial();
}

}  // namespace similis::cli
