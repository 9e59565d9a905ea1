// SPDX-License-Identifier: Apache-2.0
#include <cstddef>

#include "src/cli/compare/report.h"
#include "src/core/number_text.h"

namespace similis::cli {
namespace {

// RFC 4180: quoted where a comma, a quote or a line break would be misread.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace

std::string to_csv(const Report& report) {
  std::string text = report.of_directories ? "reference,distorted,frame" : "frame";
  for (const std::string& name : report.names) {
    text += ',';
    text += field(name);
  }
  text += '\n';
  for (const ScoredPair& pair : report.pairs) {
    for (const FrameScores& frame : pair.frames) {
      if (report.of_directories) {
        text += field(pair.files.reference) + ',' + field(pair.files.distorted) + ',';
      }
      text += shortest(frame.frame);
      for (const std::optional<double>& value : frame.values) {
        text += ',';
        if (value) text += shortest(*value);
      }
      text += '\n';
    }
  }
  return text;
}

}  // namespace similis::cli
