// SPDX-License-Identifier: Apache-2.0
#include "src/cli/compare/compare.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "src/cli/compare/report.h"
#include "src/cli/compare/scoring.h"
#include "src/cli/device.h"
#include "src/cli/metrics/metric_request.h"
#include "src/cli/metrics/metrics.h"
#include "src/cli/terminal/notes.h"
#include "src/cli/terminal/output.h"
#include "src/cli/threads.h"
#include "src/cli/usage_error.h"
#include "src/core/parallel.h"
#include "src/core/require.h"

namespace similis::cli {
namespace {

namespace fs = std::filesystem;

using Writer = std::string (*)(const Report&);

Writer find_writer(const std::string& format) {
  if (format == "table") return to_table;
  if (format == "json") return to_json;
  if (format == "csv") return to_csv;
  if (format == "xml") return to_xml;
  throw UsageError(fmt::format("--format is \"{}\"; it must be table, json, csv or xml", format));
}

bool is_directory(const std::string& path) {
  std::error_code error;
  return path != "-" && fs::is_directory(path, error);
}

// Refuses options that do not fit together, before any file is read.
void check(const CompareOptions& options, const std::optional<MapRequest>& map) {
  if (options.reference == "-" && options.distorted == "-") {
    throw UsageError("only one of REF and DIST can be standard input");
  }
  const bool reference_is = is_directory(options.reference);
  if (reference_is != is_directory(options.distorted)) {
    const std::string& directory = reference_is ? options.reference : options.distorted;
    const std::string& other = reference_is ? options.distorted : options.reference;
    require(other == "-" || fs::exists(other), "cannot read {}: No such file or directory", other);
    throw UsageError(fmt::format(
        "{} is a directory but {} is not; compare two files or two directories", directory, other));
  }
  if (map && reference_is) {
    throw UsageError("--map takes two files, not directories");
  }
  const std::vector<std::string> inputs = {options.reference, options.distorted};
  if (!is_standard_output(options.output)) require_writable("-o", options.output, inputs);
  if (map) require_writable("--map", map->path, inputs);
}

// A run that failed does not touch `path`; it writes its scores so far beside it.
void write_report(const Report& report, Writer writer, const std::string& path) {
  const bool is_file = !is_standard_output(path);
  if (report.pairs.empty() && (is_file || !report.of_directories)) return;
  if (report.error.empty() || !is_file) {
    write_output(writer(report), path);
    return;
  }
  const std::string partial = path + ".partial";
  write_output(writer(report), partial);
  print_note(fmt::format("the scores so far are in {}", partial));
}

std::vector<FilePair> find_pairs(const CompareOptions& options, Report& report) {
  if (!report.of_directories) return {{options.reference, options.distorted}};
  MatchedDirectories matched = match_directories(options.reference, options.distorted);
  report.unmatched = std::move(matched.unmatched);
  for (const UnmatchedFile& file : report.unmatched) {
    const bool is_reference = file.side == "reference";
    print_note(fmt::format(
        "{} has no match in {}", file.path, is_reference ? options.distorted : options.reference));
  }
  if (matched.pairs.empty()) {
    report.error =
        fmt::format("no file in {} has a match in {}", options.distorted, options.reference);
    print_error(report.error);
  }
  return matched.pairs;
}

}  // namespace

int compare(const CompareOptions& options) {
  const Writer writer = find_writer(options.format);
  Scoring scoring{.by_default = options.metrics.empty(), .device = parse_device(options.device)};
  const std::vector<std::string>& texts = scoring.by_default ? default_metrics() : options.metrics;
  scoring.measures = requested_measures(texts);
  if (!options.map.empty()) scoring.map = requested_map(options.map, options.metrics);
  if (!options.background.empty()) scoring.inputs.background = parse_color(options.background);
  scoring.inputs.selection = parse_frame_selection(options.frames, options.every, options.offset);
  scoring.inputs.raw = parse_raw_video(options.size, options.pixel_format);
  const bool takes_any_depth = std::any_of(scoring.measures.begin(), scoring.measures.end(),
      [](const Measure& measure) { return measure.takes_as_read; });
  if (takes_any_depth) scoring.inputs.depths = Depths::may_differ;
  const int threads = parse_threads(options.threads);
  check(options, scoring.map);

  std::optional<ThreadPool> pool;
  if (threads > 0) scoring.exec.runner = pool.emplace(threads).runner();
  scoring.threads = threads > 0 ? threads : default_threads();

  Report report;
  report.of_directories = is_directory(options.reference);
  report.device = device_name(scoring.device);
  report.selection = scoring.inputs.selection;
  Notes notes;
  score_pairs(scoring, find_pairs(options, report), notes, report);
  for (const std::string& line : notes.lines()) print_note(line);
  require(!report.names.empty() || !report.error.empty(),
      "none of the default metrics can score {}; choose metrics with -m",
      display_name(options.distorted));
  write_report(report, writer, options.output);
  return report.error.empty() ? 0 : 1;
}

}  // namespace similis::cli
