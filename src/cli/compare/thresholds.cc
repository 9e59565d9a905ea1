// SPDX-License-Identifier: Apache-2.0
#include "src/cli/compare/thresholds.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <optional>

#include "src/cli/inputs/media_pair.h"
#include "src/cli/results/statistics.h"
#include "src/cli/terminal/nearest.h"
#include "src/cli/usage_error.h"
#include "src/core/number_text.h"

namespace similis::cli {
namespace {

std::vector<std::string> statistic_names() {
  std::vector<std::string> names;
  for (const auto& [name, value] : Statistics{}.named()) names.emplace_back(name);
  return names;
}

// The measure's own name, or one of its numbers.
bool is_of(const std::string& name, const Measure& measure) {
  return name == measure.name || name.starts_with(measure.name + "-");
}

Threshold parse(const std::string& option, const std::string& text, Limit limit,
    const std::vector<Measure>& measures) {
  const std::size_t equals = text.rfind('=');
  const std::optional<double> value =
      equals == std::string::npos ? std::nullopt : parse_number<double>(text.substr(equals + 1));
  if (!value || std::isnan(*value)) {
    throw UsageError(fmt::format("{} is \"{}\"; it must be METRIC[.STAT]=NUMBER", option, text));
  }
  Threshold threshold{text.substr(0, equals), "mean", *value, limit};
  const std::vector<std::string> statistics = statistic_names();
  const auto is_known = [&](const std::string& name) {
    return std::any_of(measures.begin(), measures.end(),
        [&](const Measure& measure) { return is_of(name, measure); });
  };
  const std::size_t dot = threshold.name.rfind('.');
  if (!is_known(threshold.name) || dot != std::string::npos) {
    const std::string statistic = dot == std::string::npos ? "" : threshold.name.substr(dot + 1);
    const bool is_statistic =
        std::find(statistics.begin(), statistics.end(), statistic) != statistics.end();
    if (is_statistic) {
      threshold.name.resize(dot);
      threshold.statistic = statistic;
    } else if (dot != std::string::npos && is_known(threshold.name.substr(0, dot)) &&
               !std::isdigit(static_cast<unsigned char>(statistic.front()))) {
      throw UsageError(fmt::format("{} {}: there is no statistic \"{}\"{}", option, text, statistic,
          nearest_hint(statistic, statistics)));
    }
  }
  if (is_known(threshold.name)) return threshold;
  std::vector<std::string> names;
  for (const Measure& measure : measures) names.push_back(measure.name);
  throw UsageError(fmt::format("{} {}: {} is not scored{}; ask for it with -m", option, text,
      threshold.name, nearest_hint(threshold.name, names)));
}

double statistic_named(const std::string& wanted, const Statistics& statistics) {
  for (const auto& [name, value] : statistics.named()) {
    if (name == wanted) return value;
  }
  return NAN;
}

bool keeps(double score, const Threshold& threshold) {
  return threshold.limit == Limit::at_least ? score >= threshold.value : score <= threshold.value;
}

// The report's columns that a threshold's name stands for: that column, or all of the measure.
std::vector<std::size_t> columns_of(const Threshold& threshold, const Report& report) {
  std::vector<std::size_t> columns;
  for (std::size_t i = 0; i < report.names.size(); ++i) {
    if (report.names[i] == threshold.name) return {i};
    if (report.kinds[i].measure == threshold.name) columns.push_back(i);
  }
  return columns;
}

}  // namespace

std::vector<Threshold> parse_thresholds(const std::string& option,
    const std::vector<std::string>& texts, Limit limit, const std::vector<Measure>& measures) {
  std::vector<Threshold> thresholds;
  for (const std::string& text : texts) {
    thresholds.push_back(parse(option, text, limit, measures));
  }
  return thresholds;
}

std::vector<std::string> missed_thresholds(
    const std::vector<Threshold>& thresholds, const Report& report) {
  std::vector<std::string> missed;
  for (const ScoredPair& pair : report.pairs) {
    const std::string file = display_name(pair.files.distorted);
    for (const Threshold& threshold : thresholds) {
      const std::vector<std::size_t> columns = columns_of(threshold, report);
      if (columns.empty()) missed.push_back(fmt::format("{}: no {}", file, threshold.name));
      for (const std::size_t column : columns) {
        const double score =
            statistic_named(threshold.statistic, statistics_of(report, pair, column));
        if (keeps(score, threshold)) continue;
        missed.push_back(
            fmt::format("{}: {} of {} is {}; it must be at {} {}", file, threshold.statistic,
                report.names[column], std::isnan(score) ? "missing" : fmt::format("{:.6g}", score),
                threshold.limit == Limit::at_least ? "least" : "most", shortest(threshold.value)));
      }
    }
  }
  return missed;
}

}  // namespace similis::cli
