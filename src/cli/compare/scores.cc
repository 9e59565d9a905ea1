// SPDX-License-Identifier: Apache-2.0
#include "src/cli/compare/scores.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>

#include "src/cli/inputs/clips/video_planes.h"

namespace similis::cli {
namespace {

std::string score_name(const std::vector<Measure>& measures, const ScoreKey& key) {
  const Measure& measure = measures[key.measure];
  std::string name = measure.name;
  if (key.plane != kWholeFrame) name += fmt::format("-{}", plane_name(key.plane));
  if (!measure.parts[key.part].empty()) name += fmt::format("-{}", measure.parts[key.part]);
  return name;
}

// The column of each number of the results, in the order of the measures.
using Columns = std::map<ScoreKey, std::size_t>;

Columns used_columns(const std::vector<PairScores>& all) {
  Columns columns;
  for (const PairScores& scores : all) {
    for (const ScoredFrame& frame : scores.frames) {
      for (const auto& [key, value] : frame.values) columns[key] = 0;
    }
  }
  std::size_t next = 0;
  for (auto& [key, column] : columns) column = next++;
  return columns;
}

FrameScores row_of(const ScoredFrame& frame, const Columns& columns) {
  FrameScores row{frame.number, std::vector<std::optional<double>>(columns.size())};
  for (const auto& [key, value] : frame.values) row.values[columns.at(key)] = value;
  return row;
}

// A property that all pairs share; empty if they differ.
template <class T>
std::optional<T> common(const std::vector<PairScores>& all, std::optional<T> SampleKind::*member) {
  std::optional<T> value;
  for (const PairScores& scores : all) {
    const std::optional<T>& own = scores.pair.samples.*member;
    if (&scores != &all.front() && own != value) return std::nullopt;
    value = own;
  }
  return value;
}

// A measure's settings in all pairs that it has scored, with "null" for each that is not the same
// in all of them. Empty if it has scored none.
std::optional<Settings> common_settings(const std::vector<PairScores>& all, std::size_t measure) {
  std::optional<Settings> merged;
  const auto find = [](Settings& settings, const std::string& name) {
    return std::find_if(settings.begin(), settings.end(),
        [&](const auto& setting) { return setting.first == name; });
  };
  for (const PairScores& scores : all) {
    const auto found = scores.settings.find(measure);
    if (found == scores.settings.end()) continue;
    Settings settings = found->second;
    if (!merged) {
      merged = std::move(settings);
      continue;
    }
    for (auto& [name, value] : *merged) {
      const auto here = find(settings, name);
      if (here == settings.end() || here->second != value) value = "null";
    }
    for (const auto& [name, value] : settings) {
      if (find(*merged, name) == merged->end()) merged->emplace_back(name, "null");
    }
  }
  return merged;
}

// The settings of a pair that are not in `common`.
Settings without(const Settings& settings, const Settings& common) {
  Settings rest;
  for (const auto& setting : settings) {
    if (std::find(common.begin(), common.end(), setting) == common.end()) rest.push_back(setting);
  }
  return rest;
}

}  // namespace

void lay_out(const std::vector<Measure>& measures, std::vector<PairScores> all, Report& report) {
  report.samples = {common(all, &SampleKind::bit_depth), common(all, &SampleKind::channels),
      common(all, &SampleKind::chroma), common(all, &SampleKind::voxels)};
  const Columns columns = used_columns(all);
  for (const auto& [key, column] : columns) {
    report.names.push_back(score_name(measures, key));
    const Measure& measure = measures[key.measure];
    report.kinds.push_back({measure.name, measure.is_error, measure.pooling});
  }
  for (std::size_t i = 0; i < measures.size(); ++i) {
    const std::optional<Settings> shared = common_settings(all, i);
    if (!shared) continue;
    report.metric_settings.push_back({measures[i].name, *shared});
    for (PairScores& scores : all) {
      const Settings own = without(scores.settings[i], *shared);
      if (!own.empty()) scores.pair.own_settings.push_back({measures[i].name, own});
    }
  }
  for (PairScores& scores : all) {
    for (const ScoredFrame& frame : scores.frames) {
      scores.pair.frames.push_back(row_of(frame, columns));
    }
    report.pairs.push_back(std::move(scores.pair));
  }
}

}  // namespace similis::cli
