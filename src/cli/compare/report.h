// SPDX-License-Identifier: Apache-2.0
// The results of a run of `similis compare`, and the documents that they are written as.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/cli/inputs/directories.h"
#include "src/cli/inputs/frame_selection.h"
#include "src/cli/inputs/picture_pair.h"
#include "src/cli/inputs/video_pair.h"
#include "src/cli/metrics/metric.h"
#include "src/cli/terminal/json_text.h"

namespace similis::cli {

struct FrameScores {
  std::int64_t frame = 0;
  std::vector<std::optional<double>> values;  ///< one for each of Report::names
};

/// The settings of a metric, values in JSON.
struct MetricSettings {
  std::string name;  ///< as -m names the metric
  Settings values;
};

struct ScoredPair {
  FilePair files;
  Differences differences;
  std::vector<FrameScores> frames;
  FrameCounts counts;                        ///< of videos read to their end
  std::vector<MetricSettings> own_settings;  ///< those that differ from pair to pair
};

struct Report {
  bool of_directories = false;
  std::string device;
  std::vector<std::string> names;                     ///< one for each value of a frame
  std::vector<MetricSettings> metric_settings;        ///< of all pairs; "null" where they differ
  std::optional<int> bit_depth, channels;             ///< empty where they differ between pairs
  std::optional<std::string> chroma;                  ///< of video, likewise
  std::optional<std::array<std::int64_t, 3>> voxels;  ///< of volumes, likewise: along x, y, z
  FrameSelection selection;
  std::vector<ScoredPair> pairs;  ///< one, unless of directories
  std::vector<UnmatchedFile> unmatched;
  std::string error;  ///< why the report is incomplete; empty if it is complete
};

/// All values of one name, without missing ones.
std::vector<double> scores_of(const std::vector<ScoredPair>& pairs, std::size_t name);

/// One document. Of two files: similis, reference, distorted, device,
/// settings, metrics, frames; of directories: similis, settings, metrics, pairs, unmatched; and
/// error, if there is one.
Json report_document(const Report& report);

/// It as text, laid out as json_text.h says.
std::string to_json(const Report& report);

/// The same in XML, names and values as attributes.
std::string to_xml(const Report& report);

/// A header, then a line for each frame; of directories the files come first in each.
std::string to_csv(const Report& report);

/// Columns for people: of a picture its scores, of a video a line of statistics for each score, of
/// directories a line for each pair, with the mean of its frames, and mean, min and max of all.
std::string to_table(const Report& report);

}  // namespace similis::cli
