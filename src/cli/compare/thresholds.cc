// SPDX-License-Identifier: Apache-2.0
#include "src/cli/compare/thresholds.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>

#include "src/cli/inputs/clips/video_planes.h"
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

// The measure's own name, or that of one of its numbers.
bool is_of(const std::string& name, const Measure& measure) {
  if (name == measure.name) return true;
  if (!name.starts_with(measure.name + "-")) return false;
  const std::string part = name.substr(measure.name.size() + 1);
  return std::find(measure.parts.begin(), measure.parts.end(), part) != measure.parts.end() ||
         (measure.video_planes == VideoPlanes::all && is_plane_name(part));
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
               (statistic.empty() || !std::isdigit(static_cast<unsigned char>(statistic[0])))) {
      throw UsageError(fmt::format("{} {}: there is no statistic \"{}\"{}", option, text, statistic,
          nearest_hint(statistic, statistics)));
    }
  }
  if (!is_known(threshold.name)) {  // -m takes underscores too
    const auto end = threshold.name.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                  threshold.name.find('='), threshold.name.size()));
    std::replace(threshold.name.begin(), end, '_', '-');
  }
  const auto found = std::find_if(measures.begin(), measures.end(),
      [&](const Measure& measure) { return is_of(threshold.name, measure); });
  if (found != measures.end()) {
    if (!found->is_error || threshold.statistic != "harmonic_mean") return threshold;
    throw UsageError(fmt::format(
        "{} {}: {} is an error, which has no harmonic mean", option, text, found->name));
  }
  std::vector<std::string> names;
  for (const Measure& measure : measures) names.push_back(measure.name);
  throw UsageError(fmt::format("{} {}: {} is not scored{}; ask for it with -m", option, text,
      threshold.name, nearest_hint(threshold.name, names)));
}

bool keeps(double score, const Threshold& threshold) {
  return threshold.limit == Limit::at_least ? score >= threshold.value : score <= threshold.value;
}

// A number of a pair's results.
struct Score {
  std::string name, measure;
  std::function<double(const std::string& statistic)> statistic;
};

// Appends a sentence for each threshold that the scores of a pair miss: those of the threshold's
// name, or else those of its measure.
void add_missed(const std::vector<Threshold>& thresholds, const std::vector<Score>& scores,
    const std::string& pair, std::vector<std::string>& missed) {
  for (const Threshold& threshold : thresholds) {
    const bool is_one = std::any_of(scores.begin(), scores.end(),
        [&](const Score& score) { return score.name == threshold.name; });
    bool is_missing = true;
    for (const Score& score : scores) {
      if ((is_one ? score.name : score.measure) != threshold.name) continue;
      is_missing = false;
      const double value = score.statistic(threshold.statistic);
      if (keeps(value, threshold)) continue;
      missed.push_back(
          fmt::format("{}: {} of {} is {}; it must be at {} {}", pair, threshold.statistic,
              score.name, std::isnan(value) ? "missing" : fmt::format("{:.6g}", value),
              threshold.limit == Limit::at_least ? "least" : "most", shortest(threshold.value)));
    }
    if (is_missing) missed.push_back(fmt::format("{}: it has no {}", pair, threshold.name));
  }
}

std::vector<Score> scores_of(const Report& report, const ScoredPair& pair) {
  std::vector<Score> scores;
  for (std::size_t i = 0; i < report.names.size(); ++i) {
    const bool is_scored = std::any_of(pair.frames.begin(), pair.frames.end(),
        [&](const FrameScores& frame) { return frame.values[i].has_value(); });
    if (!is_scored) continue;
    const Statistics statistics = statistics_of(report, pair, i);
    scores.push_back(
        {report.names[i], report.kinds[i].measure, [statistics](const std::string& wanted) {
           for (const auto& [name, value] : statistics.named()) {
             if (name == wanted) return value;
           }
           return std::numeric_limits<double>::quiet_NaN();
         }});
  }
  return scores;
}

// The id, or the names that it is made of where the list gives none.
std::string name_of(const Json& row) {
  const auto text = [&](const char* key) { return row.value(key, ""); };
  if (text("id") != text("reference") + "\t" + text("distorted")) return text("id");
  return fmt::format("{} against {}", text("distorted"), text("reference"));
}

std::vector<Score> scores_of(const Json& metrics, const std::vector<Measure>& measures) {
  std::vector<Score> scores;
  for (const auto& metric : metrics.items()) {
    const auto measure = std::find_if(measures.begin(), measures.end(),
        [&](const Measure& candidate) { return is_of(metric.key(), candidate); });
    if (measure == measures.end()) continue;
    const Json& statistics = metric.value();
    scores.push_back({metric.key(), measure->name, [&statistics](const std::string& wanted) {
                        const auto value = statistics.find(wanted);
                        const bool has_number = value != statistics.end() && value->is_number();
                        if (has_number) return value->get<double>();
                        // The deviation of infinite scores is the one that has no value.
                        return wanted == "stdev" ? std::numeric_limits<double>::quiet_NaN()
                                                 : std::numeric_limits<double>::infinity();
                      }});
  }
  return scores;
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
    add_missed(thresholds, scores_of(report, pair), display_name(pair.files.distorted), missed);
  }
  return missed;
}

std::vector<std::string> missed_thresholds(const std::vector<Threshold>& thresholds,
    const std::vector<Measure>& measures, const Json& row) {
  std::vector<std::string> missed;
  add_missed(
      thresholds, scores_of(row.value("metrics", Json::object()), measures), name_of(row), missed);
  return missed;
}

}  // namespace similis::cli
