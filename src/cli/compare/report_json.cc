// SPDX-License-Identifier: Apache-2.0
#include <cstddef>

#include "similis/version.h"
#include "src/cli/compare/report.h"
#include "src/cli/compare/statistics.h"
#include "src/cli/terminal/json_text.h"

namespace similis::cli {
namespace {

Json metrics_json(const std::vector<std::string>& names, const std::vector<ScoredPair>& pairs) {
  Json json = Json::object();
  for (std::size_t i = 0; i < names.size(); ++i) {
    Json& entry = json[names[i]] = Json::object();
    for (const auto& [name, value] : statistics(scores_of(pairs, i)).named()) entry[name] = value;
  }
  return json;
}

Json frames_json(const std::vector<std::string>& names, const ScoredPair& pair) {
  Json json = Json::array();
  for (const FrameScores& frame : pair.frames) {
    Json entry = {{"frame", frame.frame}};
    for (std::size_t i = 0; i < names.size(); ++i) {
      entry[names[i]] = frame.values[i] ? Json(*frame.values[i]) : Json();
    }
    json.push_back(entry);
  }
  return json;
}

Json differences_json(const Report& report) {
  Json json = Json::object();
  for (const ScoredPair& pair : report.pairs) {
    if (pair.differences.empty()) continue;
    Json& target = report.of_directories ? json[pair.files.distorted] : json;
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
    if (!report.of_directories) return counts_json(pair.counts);
    json[pair.files.distorted] = counts_json(pair.counts);
  }
  return json;
}

Json selection_json(const FrameSelection& selection) {
  Json json = {{"first", selection.first}};
  if (selection.end) json["end"] = *selection.end;
  json["every"] = selection.every;
  json["offset"] = selection.offset;
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

// `metrics` has each metric's options, `differences` the conversions that made pictures comparable.
Json settings_json(const Report& report) {
  Json json = Json::object();
  if (report.of_directories) json["device"] = report.device;
  if (report.bit_depth) json["bit_depth"] = *report.bit_depth;
  if (report.channels) json["channels"] = *report.channels;
  if (report.chroma) json["chroma"] = *report.chroma;
  if (report.voxels) json["voxels"] = *report.voxels;
  const Json counts = frame_counts_json(report);
  if (!counts.empty()) json["frames"] = counts;
  if (report.selection != FrameSelection{}) json["selection"] = selection_json(report.selection);
  json["metrics"] = metric_settings_json(report.metric_settings);
  const Json differences = differences_json(report);
  if (!differences.empty()) json["differences"] = differences;
  return json;
}

Json pairs_json(const Report& report) {
  Json json = Json::array();
  for (const ScoredPair& pair : report.pairs) {
    Json entry = {{"reference", pair.files.reference}, {"distorted", pair.files.distorted}};
    if (!pair.own_settings.empty()) {
      entry["settings"] = {{"metrics", metric_settings_json(pair.own_settings)}};
    }
    entry["metrics"] = metrics_json(report.names, {pair});
    entry["frames"] = frames_json(report.names, pair);
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

Json report_document(const Report& report) {
  Json json = {{"similis", SIMILIS_VERSION}};
  if (!report.of_directories) {
    json["reference"] = report.pairs.front().files.reference;
    json["distorted"] = report.pairs.front().files.distorted;
    json["device"] = report.device;
  }
  json["settings"] = settings_json(report);
  json["metrics"] = metrics_json(report.names, report.pairs);
  if (report.of_directories) {
    json["pairs"] = pairs_json(report);
    json["unmatched"] = unmatched_json(report);
  } else {
    json["frames"] = frames_json(report.names, report.pairs.front());
  }
  if (!report.error.empty()) json["error"] = report.error;
  return json;
}

std::string to_json(const Report& report) { return json_text(report_document(report)); }

}  // namespace similis::cli
