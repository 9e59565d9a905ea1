// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <string_view>

#include "similis/version.h"
#include "src/cli/encodes/curves.h"
#include "src/cli/results/report.h"
#include "src/cli/results/worst_frames.h"
#include "src/cli/terminal/json_text.h"

namespace similis::cli {
namespace {

// harmonic_mean weighs small scores most, so errors have none.
Json statistics_json(const Statistics& statistics, bool is_error) {
  Json json = Json::object();
  for (const auto& [name, value] : statistics.named()) {
    if (!is_error || std::string_view(name) != "harmonic_mean") json[name] = value;
  }
  return json;
}

Json metrics_json(const Report& report, const ScoredPair& pair) {
  Json json = Json::object();
  for (std::size_t i = 0; i < report.names.size(); ++i) {
    json[report.names[i]] =
        statistics_json(statistics_of(report, pair, i), report.kinds[i].is_error);
  }
  return json;
}

Json metrics_by_pair_json(const Report& report) {
  Json json = Json::object();
  for (std::size_t i = 0; i < report.names.size(); ++i) {
    json[report.names[i]] =
        statistics_json(statistics_of_pairs(report, i), report.kinds[i].is_error);
  }
  return json;
}

Json frames_json(const std::vector<std::string>& names, const ScoredPair& pair) {
  Json json = Json::array();
  for (const FrameScores& frame : pair.frames) json.push_back(frame_document(names, pair, frame));
  return json;
}

Json worst_json(const Report& report, const ScoredPair& pair) {
  Json json = Json::array();
  for (std::size_t i = 0; i < report.names.size(); ++i) {
    for (const WorstFrame& worst :
        worst_frames(pair, i, report.kinds[i].is_error, report.worst_count)) {
      Json entry = {{"frame", worst.frame}};
      if (worst.seconds) entry["time"] = *worst.seconds;
      entry[report.names[i]] = worst.value;
      json.push_back(entry);
    }
  }
  return json;
}

Json differences_json(const Report& report) {
  Json json = Json::object();
  for (const ScoredPair& pair : report.pairs) {
    if (pair.differences.empty()) continue;
    Json& target = report.compared != Compared::pair ? json[pair.files.distorted] : json;
    for (const auto& [key, sentence] : pair.differences) target[key] = sentence;
  }
  return json;
}

Json counts_json(const FrameCounts& counts) {
  return {{"reference", *counts.reference}, {"distorted", *counts.distorted}};
}

// Numbers of frames of the videos that were read to their end.
Json frame_counts_json(const Report& report) {
  Json json = Json::object();
  for (const ScoredPair& pair : report.pairs) {
    if (!pair.counts.reference) continue;
    if (report.compared == Compared::pair) return counts_json(pair.counts);
    json[pair.files.distorted] = counts_json(pair.counts);
  }
  return json;
}

Json metric_settings_json(const std::vector<MetricSettings>& metrics) {
  Json json = Json::object();
  for (const MetricSettings& metric : metrics) {
    Json& entry = json[metric.name] = Json::object();
    for (const auto& [name, value] : metric.values) entry[name] = Json::parse(value);
  }
  return json;
}

void add_samples(const SampleKind& samples, Json& json) {
  if (samples.bit_depth) json["bit_depth"] = *samples.bit_depth;
  if (samples.channels) json["channels"] = *samples.channels;
  if (samples.chroma) json["chroma"] = *samples.chroma;
  if (samples.voxels) json["voxels"] = *samples.voxels;
}

Json rate_json(const ScoredPair& pair) {
  Json json = Json::object();
  if (pair.rate.is_known()) json["reference"] = pair.rate.value();
  if (pair.distorted_rate.is_known()) json["distorted"] = pair.distorted_rate.value();
  return json;
}

// `metrics` has each metric's options, `differences` the conversions that made pictures comparable.
Json settings_json(const Report& report) {
  Json json = Json::object();
  if (report.compared == Compared::directories) json["device"] = report.device;
  add_samples(report.samples, json);
  const Json counts = frame_counts_json(report);
  if (!counts.empty()) json["frames"] = counts;
  if (report.compared == Compared::pair) {
    const Json rate = rate_json(report.pairs.front());
    if (!rate.empty()) json["frames_per_second"] = rate;
  }
  if (report.selection != FrameSelection{})
    json["selection"] = selection_document(report.selection);
  json["metrics"] = metric_settings_json(report.metric_settings);
  const Json differences = differences_json(report);
  if (!differences.empty()) json["differences"] = differences;
  if (report.compared == Compared::pair && !report.pairs.front().done.empty()) {
    json["done"] = report.pairs.front().done;
  }
  return json;
}

// The members that a pair has of its own: the kind of its samples, and settings of metrics.
Json own_settings_json(const Report& report, const ScoredPair& pair) {
  Json json = Json::object();
  if (pair.samples != report.samples) add_samples(pair.samples, json);
  if (!pair.own_settings.empty()) json["metrics"] = metric_settings_json(pair.own_settings);
  if (!pair.done.empty()) json["done"] = pair.done;
  return json;
}

Json pairs_json(const Report& report) {
  Json json = Json::array();
  for (const ScoredPair& pair : report.pairs) {
    Json entry = {{"reference", pair.files.reference}, {"distorted", pair.files.distorted}};
    const Json settings = own_settings_json(report, pair);
    if (!settings.empty()) entry["settings"] = settings;
    entry["metrics"] = metrics_json(report, pair);
    entry["frames"] = frames_json(report.names, pair);
    json.push_back(entry);
  }
  return json;
}

Json encodes_json(const Report& report) {
  Json json = Json::array();
  for (const ScoredPair& pair : report.pairs) {
    Json entry = {{"distorted", pair.files.distorted}};
    if (pair.size) {
      entry["bytes"] = pair.size->bytes;
      if (pair.size->bits_per_second) entry["bits_per_second"] = *pair.size->bits_per_second;
      if (pair.size->bits_per_pixel) entry["bits_per_pixel"] = *pair.size->bits_per_pixel;
    }
    const Json settings = own_settings_json(report, pair);
    if (!settings.empty()) entry["settings"] = settings;
    entry["metrics"] = metrics_json(report, pair);
    entry["frames"] = frames_json(report.names, pair);
    if (is_moving(pair)) entry["worst"] = worst_json(report, pair);
    if (!pair.error.empty()) entry["error"] = pair.error;
    json.push_back(entry);
  }
  return json;
}

Json curves_json(const Report& report) {
  Json json = Json::array();
  const std::vector<CurveDifference> differences = curve_differences(report);
  for (const Curve& curve : report.curves) {
    Json entry = {{"name", curve.name}, {"files", curve.files}};
    if (&curve != &report.curves.front()) {
      entry["against"] = report.curves.front().name;
      entry["interpolation"] = "PCHIP";
      for (const CurveDifference& found : differences) {
        if (found.curve != curve.name) continue;
        const BdDifference& difference = found.difference;
        Json& numbers = entry["metrics"][found.name] = Json::object();
        numbers["bd_rate"] = difference.rate ? Json(*difference.rate) : Json();
        numbers["bd_quality"] = difference.quality ? Json(*difference.quality) : Json();
        if (!difference.note.empty()) numbers["note"] = difference.note;
      }
    }
    json.push_back(entry);
  }
  return json;
}

Json unmatched_json(const Report& report) {
  Json json = Json::array();
  for (const UnmatchedFile& file : report.unmatched) {
    json.push_back({{"path", file.path}, {"side", file.side}});
  }
  return json;
}

}  // namespace

Json selection_document(const FrameSelection& selection) {
  Json json = {{"first", selection.first}};
  if (selection.end) json["end"] = *selection.end;
  json["every"] = selection.every;
  json["offset"] = selection.offset;
  return json;
}

Json row_document(const Report& report, bool has_frames) {
  const ScoredPair& pair = report.pairs.front();
  Json settings = Json::object();
  add_samples(pair.samples, settings);
  const Json rate = rate_json(pair);
  if (!rate.empty()) settings["frames_per_second"] = rate;
  if (pair.counts.reference) settings["frames"] = counts_json(pair.counts);
  for (const auto& [key, sentence] : pair.differences) settings["differences"][key] = sentence;
  if (!pair.done.empty()) settings["done"] = pair.done;
  if (pair.samples.chroma) settings["metrics"] = metric_settings_json(report.metric_settings);
  Json row = {{"settings", settings}, {"metrics", metrics_json(report, pair)}};
  if (has_frames) row["frames"] = frames_json(report.names, pair);
  return row;
}

Json metrics_document(const Report& report) {
  Json json = Json::object();
  for (std::size_t i = 0; i < report.names.size(); ++i) {
    json[report.names[i]] =
        statistics_json(statistics_of_frames(report, i), report.kinds[i].is_error);
  }
  return json;
}

Json frame_document(
    const std::vector<std::string>& names, const ScoredPair& pair, const FrameScores& frame) {
  Json entry = {{"frame", frame.frame}};
  if (const auto seconds = seconds_of(pair, frame.frame)) entry["time"] = *seconds;
  for (std::size_t i = 0; i < names.size(); ++i) {
    entry[names[i]] = frame.values[i] ? Json(*frame.values[i]) : Json();
  }
  return entry;
}

Json head_document(const Report& report) {
  Json json = {{"similis", SIMILIS_VERSION}};
  if (report.compared != Compared::directories) {
    json["reference"] = report.pairs.front().files.reference;
    if (report.compared == Compared::pair) json["distorted"] = report.pairs.front().files.distorted;
    json["device"] = report.device;
  }
  json["settings"] = settings_json(report);
  return json;
}

Json report_document(const Report& report) {
  Json json = head_document(report);
  if (report.compared == Compared::encodes) {
    json["encodes"] = encodes_json(report);
    if (!report.curves.empty()) json["curves"] = curves_json(report);
  } else {
    json["metrics"] = metrics_document(report);
  }
  if (report.compared == Compared::directories) {
    json["metrics_by_pair"] = metrics_by_pair_json(report);
    json["pairs"] = pairs_json(report);
    json["unmatched"] = unmatched_json(report);
  } else if (report.compared == Compared::pair) {
    json["frames"] = frames_json(report.names, report.pairs.front());
    if (is_moving(report.pairs.front())) json["worst"] = worst_json(report, report.pairs.front());
  }
  if (!report.error.empty()) json["error"] = report.error;
  return json;
}

std::string to_json(const Report& report) { return json_text(report_document(report)); }

}  // namespace similis::cli
