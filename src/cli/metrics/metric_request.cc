// SPDX-License-Identifier: Apache-2.0
#include "src/cli/metrics/metric_request.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <optional>
#include <utility>

#include "src/cli/maps/raw_map.h"
#include "src/cli/metrics/metrics.h"
#include "src/cli/terminal/nearest.h"
#include "src/core/joined.h"
#include "src/core/number_text.h"

namespace similis::cli {
namespace {

std::string_view metric_part(std::string_view text) { return text.substr(0, text.find('=')); }

// Names take _ or - alike: ms_ssim, window-size.
std::string replaced(std::string_view name, char from, char to) {
  std::string text(name);
  std::replace(text.begin(), text.end(), from, to);
  return text;
}

// Metrics that people ask for and another program has, in letters of any case.
std::string_view program_with(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
      [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  using Entry = std::pair<std::string_view, std::string_view>;
  static constexpr std::array kElsewhere = {Entry{"butteraugli", "libjxl's butteraugli_main"},
      Entry{"xpsnr", "ffmpeg's filter xpsnr"}, Entry{"cvvdp", "ColorVideoVDP's cvvdp"},
      Entry{"lpips", "the Python package lpips"}};
  for (const auto& [metric, program] : kElsewhere) {
    if (metric == name) return program;
  }
  return {};
}

const Metric* metric_named(std::string_view name) { return find_metric(replaced(name, '_', '-')); }

// The metrics that one text names: commas before its first "=" part them, and later ones, which may
// be part of a value, where a metric's name follows.
std::vector<std::string> metrics_in(std::string_view text) {
  const std::size_t equals = std::min(text.find('='), text.size());
  std::vector<std::string> metrics;
  std::size_t first = 0;
  for (std::size_t at = text.find(','); at != text.npos; at = text.find(',', at + 1)) {
    const std::string_view next = text.substr(at + 1, text.find_first_of(",=", at + 1) - at - 1);
    if (at > equals && metric_named(next) == nullptr) continue;
    metrics.emplace_back(text.substr(first, at - first));
    first = at + 1;
  }
  metrics.emplace_back(text.substr(first));
  return metrics;
}

// "; write -m vmaf -m vmaf=model=x" for several metrics in one text.
std::string apart_hint(const std::string& text) {
  const std::vector<std::string> metrics = metrics_in(text);
  return metrics.size() < 2 ? "" : "; write -m " + joined(metrics, " -m ");
}

const Metric& known_metric(std::string_view name, const std::string& argument) {
  if (const Metric* found = metric_named(name)) return *found;
  if (name == "ciede2000") {
    throw UsageError(fmt::format("{}: similis calls this metric ciede", argument));
  }
  if (const std::string_view program = program_with(std::string(name)); !program.empty()) {
    throw UsageError(fmt::format("{}: similis has no {}; {} computes it", argument, name, program));
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
    const std::string name = replaced(metric_part(part), '-', '_');
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
    measure.runs_on_vulkan = metric.runs_on_vulkan;
    measure.is_error = metric.is_error;
    return measure;
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}{}", argument, error.what(), apart_hint(text)));
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

std::vector<std::string> split_metrics(const std::vector<std::string>& texts) {
  std::vector<std::string> metrics;
  for (const std::string& text : texts) {
    const bool has_options = text.find('=') != std::string::npos;
    if (has_options && text.find(',') < text.find('=')) {
      throw UsageError(fmt::format(
          "-m {}: a metric with options takes a -m of its own{}", text, apart_hint(text)));
    }
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = has_options ? text.size() : std::min(text.find(',', at), text.size());
      const std::string metric = text.substr(at, end - at);
      if (metric.empty()) throw UsageError(fmt::format("-m {}: a metric's name is empty", text));
      const std::string_view name = metric_part(metric);
      metrics.push_back(replaced(name, '_', '-') + metric.substr(name.size()));
      at = end + 1;
    }
  }
  return metrics;
}

namespace {

// "@12" or "@worst" in front of "=FILE" and behind a metric that may have options itself.
struct MapText {
  std::string metric, path;
  std::optional<std::int64_t> frame;
};

MapText split_map(std::string_view text, const std::string& argument) {
  const std::size_t at = text.find('@');
  if (at == std::string_view::npos) return {std::string(text), {}, {}};
  const std::size_t equals = std::min(text.find('=', at), text.size());
  const std::string_view word = text.substr(at + 1, equals - at - 1);
  MapText map{std::string(text.substr(0, at)).append(text.substr(equals)), {}, {}};
  if (word == "worst") return map;
  map.frame = parse_number<std::int64_t>(std::string(word));
  if (map.frame && *map.frame >= 0) return map;
  throw UsageError(
      fmt::format("{}: \"{}\" is not a frame; write a number or worst after @", argument, word));
}

}  // namespace

MapRequest requested_map(std::string_view text, const std::vector<std::string>& metric_texts) {
  const std::string argument = fmt::format("--map {}", text);
  const MapText map = split_map(text, argument);
  const std::string name = replaced(metric_part(map.metric), '_', '-');
  const std::string with_name = name + map.metric.substr(name.size());
  text = with_name;
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
  if (path.empty()) {
    throw UsageError(
        fmt::format("{}: FILE is missing; write {}=FILE.png", argument, text.substr(0, prefix)));
  }
  const std::string source = !named.empty() ? named : asked.empty() ? metric.name : asked.front();
  const auto place = std::find(metric_texts.begin(), metric_texts.end(), source);
  return {requested_measure(source), *metric.map_range, path,
      static_cast<std::size_t>(place - metric_texts.begin()), map.frame};
}

void require_map_file(const MapRequest& map) {
  if (map.path.ends_with(".png") || is_raw_map(map.path)) return;
  throw UsageError(fmt::format(
      "--map {0}={1}: a map is a PNG file, or its values in .pfm, .tiff, .npy or .nii.gz; write "
      "{0}=FILE.png",
      map.measure.name, map.path));
}

}  // namespace similis::cli
