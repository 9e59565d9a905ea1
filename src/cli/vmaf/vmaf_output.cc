// SPDX-License-Identifier: Apache-2.0
#include "src/cli/vmaf/vmaf_output.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "src/core/number_text.h"

namespace similis::cli {
namespace {

std::string number(const VmafResults& results, double value) {
  return results.is_shortest ? shortest(value) : vmaf_number(value);
}

std::string json_number(const VmafResults& results, double value) {
  return std::isfinite(value) ? number(results, value) : "null";
}

// In vmaf's order. NaN is neither below nor above anything, so it stays only if it comes first.
std::array<std::pair<const char*, double>, 4> pooled(
    const VmafResults& results, std::size_t column) {
  double smallest = 0, largest = 0, sum = 0, inverses = 0;
  for (const VmafFrame& frame : results.frames) {
    const double value = frame.values[column];
    const bool is_first = &frame == &results.frames.front();
    if (is_first || value < smallest) smallest = value;
    if (is_first || value > largest) largest = value;
    sum += value;
    inverses += 1 / (value + 1);
  }
  const auto count = static_cast<double>(results.frames.size());
  return {{{"min", smallest}, {"max", largest}, {"mean", sum / count},
      {"harmonic_mean", count / inverses - 1}}};
}

std::string json_frame(const VmafResults& results, const VmafFrame& frame) {
  std::string text =
      fmt::format("    {{\n      \"frameNum\": {},\n      \"metrics\": {{\n", frame.number);
  for (std::size_t i = 0; i < frame.values.size(); ++i) {
    const double value = frame.values[i];
    text += fmt::format("        \"{}\": {}{}{}", results.columns[i], json_number(results, value),
        i + 1 < frame.values.size() ? "," : "",
        std::isfinite(value) ? "\n" : "");  // vmaf has no line break after null
  }
  return text + "      }\n    }";
}

std::string json_pool(const VmafResults& results, std::size_t column) {
  std::string text = fmt::format("    \"{}\": {{", results.columns[column]);
  const char* separator = "\n";
  for (const auto& [name, value] : pooled(results, column)) {
    text += fmt::format("{}      \"{}\": {}", separator, name, json_number(results, value));
    separator = ",\n";
  }
  return text + "\n    }";
}

// A frame's scores, each as `pattern` of its name and its number.
std::string scores(const VmafResults& results, const VmafFrame& frame, const char* pattern) {
  std::string text;
  for (std::size_t i = 0; i < frame.values.size(); ++i) {
    text +=
        fmt::format(fmt::runtime(pattern), results.columns[i], number(results, frame.values[i]));
  }
  return text;
}

}  // namespace

std::string vmaf_number(double value) {
  const double magnitude = std::abs(value);
  double fraction = magnitude - std::trunc(magnitude);
  int zeros = 0;
  for (; fraction > 0 && fraction < 1; fraction *= 10) ++zeros;
  return zeros <= 6 ? fmt::format("{:.6f}", value) : fmt::format("{:.16f}", value);
}

std::string to_vmaf_json(const VmafResults& results) {
  const double rate = results.frames_per_second;
  std::string text = fmt::format("{{\n  \"version\": \"{}\",\n  \"fps\": {},\n  \"frames\": [",
      results.version, std::isfinite(rate) ? fmt::format("{:.2f}", rate) : "null");
  const char* separator = "\n";
  for (const VmafFrame& frame : results.frames) {
    text += std::exchange(separator, ",\n") + json_frame(results, frame);
  }
  text += "\n  ],\n  \"pooled_metrics\": {";
  separator = "\n";
  for (std::size_t i = 0; i < results.columns.size(); ++i) {
    text += std::exchange(separator, ",\n") + json_pool(results, i);
  }
  text += "\n  },\n  \"aggregate_metrics\": {";
  separator = "";
  for (const auto& [name, value] : results.aggregates) {
    text += fmt::format("{}\n    \"{}\": {}", separator, name, json_number(results, value));
    separator = ",";
  }
  return text + "\n  }\n}\n";
}

std::string to_vmaf_xml(const VmafResults& results) {
  std::string text = fmt::format(
      "<VMAF version=\"{}\">\n  <params qualityWidth=\"{}\" qualityHeight=\"{}\" />\n"
      "  <fyi fps=\"{:.2f}\" />\n  <frames>\n",
      results.version, results.width, results.height, results.frames_per_second);
  for (const VmafFrame& frame : results.frames) {
    text += fmt::format(
        "    <frame frameNum=\"{}\" {}/>\n", frame.number, scores(results, frame, "{}=\"{}\" "));
  }
  text += "  </frames>\n  <pooled_metrics>\n";
  for (std::size_t i = 0; i < results.columns.size(); ++i) {
    text += fmt::format("    <metric name=\"{}\" ", results.columns[i]);
    for (const auto& [name, value] : pooled(results, i)) {
      text += fmt::format("{}=\"{}\" ", name, number(results, value));
    }
    text += "/>\n";
  }
  text += "  </pooled_metrics>\n  <aggregate_metrics ";
  for (const auto& [name, value] : results.aggregates) {
    text += fmt::format("{}=\"{}\" ", name, number(results, value));
  }
  return text + "/>\n</VMAF>\n";
}

std::string to_vmaf_csv(const VmafResults& results) {
  std::string text = "Frame,";
  for (const std::string& column : results.columns) text += column + ",";
  text += "\n";
  for (const VmafFrame& frame : results.frames) {
    text += fmt::format("{},{}\n", frame.number, scores(results, frame, "{1},"));
  }
  return text;
}

std::string to_vmaf_subtitles(const VmafResults& results) {
  std::string text;
  for (const VmafFrame& frame : results.frames) {
    text += fmt::format("{{{0}}}{{{1}}}frame: {0}|{2}\n", frame.number, frame.number + 1,
        scores(results, frame, "{}: {}|"));
  }
  return text;
}

}  // namespace similis::cli
