// SPDX-License-Identifier: Apache-2.0
#include <cstddef>

#include "src/cli/results/report.h"
#include "src/core/number_text.h"

namespace similis::cli {

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::string csv_header(const Report& report) {
  std::string text = report.compared == Compared::pair ? "frame" : "reference,distorted,frame";
  for (const std::string& name : report.names) {
    text += ',';
    text += csv_field(name);
  }
  return text + '\n';
}

std::string csv_line(const Report& report, const ScoredPair& pair, const FrameScores& frame) {
  std::string text;
  if (report.compared != Compared::pair) {
    text += csv_field(pair.files.reference) + ',' + csv_field(pair.files.distorted) + ',';
  }
  text += shortest(frame.frame);
  for (const std::optional<double>& value : frame.values) {
    text += ',';
    if (value) text += shortest(*value);
  }
  return text + '\n';
}

std::string to_csv(const Report& report) {
  std::string text = csv_header(report);
  for (const ScoredPair& pair : report.pairs) {
    for (const FrameScores& frame : pair.frames) text += csv_line(report, pair, frame);
  }
  return text;
}

}  // namespace similis::cli
