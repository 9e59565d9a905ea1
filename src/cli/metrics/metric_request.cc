// SPDX-License-Identifier: Apache-2.0
#include "src/cli/metrics/metric_request.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <optional>

#include "src/cli/metrics/metrics.h"
#include "src/cli/terminal/nearest.h"
#include "src/core/joined.h"

namespace similis::cli {
namespace {

std::string_view metric_part(std::string_view text) { return text.substr(0, text.find('=')); }

const Metric& known_metric(std::string_view name, const std::string& argument) {
  if (const Metric* found = find_metric(name)) return *found;
  if (name.find(',') != std::string_view::npos) {
    throw UsageError(fmt::format("{}: give each metric its own -m", argument));
  }
  throw UsageError(fmt::format("{}: there is no metric \"{}\"{} (--list-metrics shows all)",
      argument, name, nearest_hint(name, metric_names())));
}

// "window_size=7:sigma=1.2"
Settings split_settings(std::string_view text, const Metric& metric, const std::string& argument) {
  std::vector<std::string> names;
  for (const MetricOption& option : metric.options) names.push_back(option.name);
  Settings settings;
  for (std::size_t colon = 0; colon != std::string_view::npos; text.remove_prefix(colon + 1)) {
    colon = text.find(':');
    const std::string_view part = text.substr(0, colon);
    const std::string name(metric_part(part));
    const auto option = std::find(names.begin(), names.end(), name);
    if (option == names.end()) {
      throw UsageError(fmt::format(
          "{}: {} has no option \"{}\"{}", argument, metric.name, name, nearest_hint(name, names)));
    }
    if (part.size() == name.size()) {
      throw UsageError(fmt::format("{}: {} has no value; it must be {}", argument, name,
          metric.options[static_cast<std::size_t>(option - names.begin())].takes));
    }
    for (const auto& [earlier, value] : settings) {
      if (earlier == name) throw UsageError(fmt::format("{}: {} is given twice", argument, name));
    }
    settings.emplace_back(name, part.substr(name.size() + 1));
    if (colon == std::string_view::npos) break;
  }
  return settings;
}

Measure requested_measure(const std::string& text) {
  const std::string argument = "-m " + text;
  const std::string_view name = metric_part(text);
  const Metric& metric = known_metric(name, argument);
  Settings settings;
  if (name.size() < text.size()) {
    settings = split_settings(std::string_view(text).substr(name.size() + 1), metric, argument);
  }
  try {
    Measure measure = metric.configure(settings);
    measure.name = metric.name;
    measure.video_planes = metric.video_planes;
    measure.runs_on_gpu = metric.runs_on_gpu;
    return measure;
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", argument, error.what()));
  }
}

}  // namespace

std::vector<Measure> requested_measures(const std::vector<std::string>& texts) {
  std::vector<Measure> measures;
  for (const std::string& text : texts) {
    if (std::count(texts.begin(), texts.end(), text) > 1) {
      throw UsageError(fmt::format("-m {} is given twice", text));
    }
    measures.push_back(requested_measure(text));
    const bool repeated = std::count_if(texts.begin(), texts.end(), [&](const std::string& other) {
      return metric_part(other) == metric_part(text);
    }) > 1;
    if (repeated) measures.back().name = text;
  }
  return measures;
}

MapRequest requested_map(std::string_view text, const std::vector<std::string>& metric_texts) {
  const std::string argument = fmt::format("--map {}", text);
  const std::string_view name = metric_part(text);
  const Metric& metric = known_metric(name, argument);
  if (!metric.map_range) {
    throw UsageError(fmt::format("{}: {} has no map; metrics with a map: {}", argument, name,
        joined(metric_names_with_maps(), ", ")));
  }
  std::string named;               // the longest text of -m that this begins with
  std::vector<std::string> asked;  // the texts of -m for the same metric
  for (const std::string& candidate : metric_texts) {
    if (metric_part(candidate) == name) asked.push_back(candidate);
    if (text.starts_with(candidate + "=") && candidate.size() > named.size()) named = candidate;
  }
  if (named.empty() && asked.size() > 1) {
    throw UsageError(fmt::format("{}: there are several {}; choose one, as in --map {}=FILE.png",
        argument, name, asked.front()));
  }
  const std::size_t prefix = named.empty() ? name.size() : named.size();
  const std::string path(text.substr(std::min(text.size(), prefix + 1)));
  if (!path.ends_with(".png")) {
    throw UsageError(fmt::format(
        "{}: a map is a PNG file; write {}=FILE.png", argument, text.substr(0, prefix)));
  }
  const std::string source = !named.empty() ? named : asked.empty() ? metric.name : asked.front();
  return {requested_measure(source), *metric.map_range, path};
}

}  // namespace similis::cli
