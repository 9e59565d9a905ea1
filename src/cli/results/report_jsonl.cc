// SPDX-License-Identifier: Apache-2.0
#include "src/cli/results/report.h"
#include "src/cli/terminal/json_text.h"

namespace similis::cli {

std::string jsonl_summary(const Report& report) {
  Json summary = {{"metrics", metrics_document(report)}};
  const FrameCounts& counts = report.pairs.front().counts;
  if (counts.reference) {
    summary["frames"] = {{"reference", *counts.reference}, {"distorted", *counts.distorted}};
  }
  if (!report.error.empty()) summary["error"] = report.error;
  return json_line({{"summary", summary}});
}

std::string to_jsonl(const Report& report) {
  if (report.pairs.empty()) return {};
  std::string text = json_line(head_document(report));
  for (const FrameScores& frame : report.pairs.front().frames) {
    text += json_line(frame_document(report.names, report.pairs.front(), frame));
  }
  return text + jsonl_summary(report);
}

}  // namespace similis::cli
