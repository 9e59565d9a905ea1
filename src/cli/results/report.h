// SPDX-License-Identifier: Apache-2.0
// The results of a run of `similis compare`, and the documents that they are written as.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/cli/inputs/clips/video_pair.h"
#include "src/cli/inputs/directories.h"
#include "src/cli/inputs/frame_selection.h"
#include "src/cli/inputs/picture_pair.h"
#include "src/cli/metrics/metric.h"
#include "src/cli/results/statistics.h"
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

struct ScoreKind {
  std::string measure;    ///< as -m names it
  bool is_error = false;  ///< it is better when lower
  Pooling pooling = Pooling::mean;
};

/// The kind of samples; each is empty where it does not apply, or differs between pairs.
struct SampleKind {
  std::optional<int> bit_depth, channels;
  std::optional<std::string> chroma;                  ///< of video
  std::optional<std::array<std::int64_t, 3>> voxels;  ///< of volumes: along x, y, z
  friend bool operator==(const SampleKind&, const SampleKind&) = default;
};

/// The size of an encode.
struct EncodedSize {
  std::int64_t bytes = 0;                 ///< of a video's stream, else of the file
  std::optional<double> bits_per_second;  ///< of video whose length in seconds is known
  std::optional<double> bits_per_pixel;   ///< of pictures
  /// The one that is known, if any.
  std::optional<double> rate() const { return bits_per_second ? bits_per_second : bits_per_pixel; }
};

struct ScoredPair {
  FilePair files;
  Differences differences;
  std::vector<FrameScores> frames;
  FrameCounts counts;                        ///< of videos read to their end
  std::vector<MetricSettings> own_settings;  ///< those that differ from pair to pair
  SampleKind samples;
  media::FrameRate rate;            ///< of a video's reference; 0/0 if it is not known
  media::FrameRate distorted_rate;  ///< likewise
  std::int64_t pixels = 0;          ///< of a picture
  std::optional<EncodedSize> size;  ///< of encodes
  std::string error;                ///< why scoring ended early; empty if it did not
  Done done;                        ///< to the inputs, on request
  bool is_video = false;            ///< the distorted file is video in YUV
  std::int64_t left_out = 0;        ///< pixels or voxels that were not finite, of all frames
};

/// The points of one encoder.
struct Curve {
  std::string name;
  std::vector<std::string> files;  ///< among the pairs' distorted files
};

/// The kind of inputs that a report compares.
enum class Compared : std::uint8_t { pair, directories, encodes };

struct Report {
  Compared compared = Compared::pair;
  std::string device;
  std::vector<std::string> names;               ///< one for each value of a frame
  std::vector<ScoreKind> kinds;                 ///< for each name
  std::vector<MetricSettings> metric_settings;  ///< of all pairs; "null" where they differ
  SampleKind samples;                           ///< the same for all pairs
  FrameSelection selection;
  int worst_count = 1;            ///< number of worst frames of videos to list
  std::vector<Curve> curves;      ///< of encodes, as --curve gives them
  std::vector<ScoredPair> pairs;  ///< one, unless of directories or encodes
  std::vector<UnmatchedFile> unmatched;
  std::string error;  ///< why the report is incomplete; empty if it is complete
};

/// The statistics of a pair's scores of this name; missing ones are left out.
Statistics statistics_of(const Report& report, const ScoredPair& pair, std::size_t name);
/// Those of the scores of all pairs' frames.
Statistics statistics_of_frames(const Report& report, std::size_t name);
/// Those of the means of all pairs that have scores of this name, each pair once.
Statistics statistics_of_pairs(const Report& report, std::size_t name);

/// True for video and animations.
bool is_moving(const ScoredPair& pair);

/// One document. For two files: similis, reference, distorted, device, settings, metrics, frames,
/// and worst if it is video; for directories: similis, settings, metrics, metrics_by_pair, pairs,
/// unmatched; for encodes: similis, reference, device, settings, encodes, curves; and error, if
/// there is one.
Json report_document(const Report& report);

/// Parts of it, for the documents that are written as they grow.
Json head_document(const Report& report);  ///< up to the settings
Json metrics_document(const Report& report);
/// {"frame", "time", NAME…}; time in seconds where the rate is known.
Json frame_document(
    const std::vector<std::string>& names, const ScoredPair& pair, const FrameScores& frame);

/// It as text, laid out as json_text.h says.
std::string to_json(const Report& report);

/// The same in XML, names and values as attributes.
std::string to_xml(const Report& report);

Json selection_document(const FrameSelection& selection);
/// A row of a corpus: the settings, metrics and, with `has_frames`, frames of a report of one pair.
Json row_document(const Report& report, bool has_frames);

/// A field of csv, quoted where it must be (RFC 4180).
std::string csv_field(const std::string& text);

/// A header, then a line for each frame; of directories and encodes the files come first in each.
std::string to_csv(const Report& report);
std::string csv_header(const Report& report);
std::string csv_line(const Report& report, const ScoredPair& pair, const FrameScores& frame);

/// JSON Lines: the head, a line for each frame, and {"summary": …}.
std::string to_jsonl(const Report& report);
std::string jsonl_summary(const Report& report);

/// Columns for people: of a picture its scores, of a video a line of statistics for each score with
/// its worst frames, of directories a line for each pair, with the mean of its frames, and mean,
/// min and max of these lines; of encodes a line for each, with its size, and the curves' BD-rates.
std::string to_table(const Report& report);

}  // namespace similis::cli
