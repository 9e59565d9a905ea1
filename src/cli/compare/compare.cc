// SPDX-License-Identifier: Apache-2.0
#include "src/cli/compare/compare.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "src/cli/compare/scoring.h"
#include "src/cli/compare/streamed_results.h"
#include "src/cli/compare/thresholds.h"
#include "src/cli/corpus/corpus.h"
#include "src/cli/corpus/pair_list.h"
#include "src/cli/device.h"
#include "src/cli/encodes/curves.h"
#include "src/cli/encodes/ladder_scoring.h"
#include "src/cli/maps/map_file.h"
#include "src/cli/metrics/clip_metrics.h"
#include "src/cli/metrics/metric_request.h"
#include "src/cli/metrics/metrics.h"
#include "src/cli/page/compare_page.h"
#include "src/cli/page/page.h"
#include "src/cli/results/report.h"
#include "src/cli/terminal/notes.h"
#include "src/cli/terminal/output.h"
#include "src/cli/threads.h"
#include "src/cli/usage_error.h"
#include "src/core/number_text.h"
#include "src/core/parallel.h"
#include "src/core/require.h"
#include "src/media/io/whole_file.h"

namespace similis::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kFailed = 1, kSignalled = 128;

using Writer = std::string (*)(const Report&);

// --format, or what the name of the output ends in, or a table.
std::string format_of(const CompareOptions& options) {
  if (!options.format.empty()) return options.format;
  for (const char* format : {"json", "jsonl", "csv", "xml"}) {
    if (options.output.ends_with(std::string(".") + format)) return format;
  }
  return "table";
}

Writer find_writer(const std::string& format) {
  if (format == "table") return to_table;
  if (format == "json") return to_json;
  if (format == "jsonl") return to_jsonl;
  if (format == "csv") return to_csv;
  if (format == "xml") return to_xml;
  throw UsageError(
      fmt::format("--format is \"{}\"; it must be table, json, jsonl, csv or xml", format));
}

bool is_directory(const std::string& path) {
  std::error_code error;
  return path != "-" && fs::is_directory(path, error);
}

// The encodes of the command line, then those that only curves name.
std::vector<std::string> all_distorted(
    const CompareOptions& options, const std::vector<Curve>& curves) {
  std::vector<std::string> files = options.distorted;
  for (const Curve& curve : curves) {
    for (const std::string& file : curve.files) {
      if (std::find(files.begin(), files.end(), file) == files.end()) files.push_back(file);
    }
  }
  return files;
}

Compared compared_of(const CompareOptions& options, const std::vector<std::string>& distorted) {
  if (is_directory(options.reference)) return Compared::directories;
  return distorted.size() > 1 ? Compared::encodes : Compared::pair;
}

void require_both_kinds(const std::string& reference, const std::string& distorted) {
  const bool reference_is = is_directory(reference);
  if (reference_is == is_directory(distorted)) return;
  const std::string& directory = reference_is ? reference : distorted;
  const std::string& other = reference_is ? distorted : reference;
  require(other == "-" || fs::exists(other), "cannot read {}: No such file or directory", other);
  throw UsageError(fmt::format(
      "{} is a directory but {} is not; compare two files or two directories", directory, other));
}

// Refuses a folder that two files would write the same map to.
void require_names_that_differ(const std::vector<std::string>& distorted) {
  std::map<std::string, std::string> paths;  // by name
  for (const std::string& path : distorted) {
    const auto [earlier, is_new] = paths.emplace(fs::path(path).filename().string(), path);
    if (is_new) continue;
    throw UsageError(fmt::format(
        "--map: {} and {} have the same name, and so would their maps", earlier->second, path));
  }
}

void check_maps(const CompareOptions& options, const std::vector<std::string>& distorted,
    const std::vector<MapRequest>& maps, const std::vector<std::string>& inputs) {
  const Compared compared = compared_of(options, distorted);
  const bool are_drawn = compared != Compared::pair ||
                         std::any_of(maps.begin(), maps.end(),
                             [](const MapRequest& map) { return map.path.ends_with(".png"); });
  using Given = std::pair<const char*, bool>;
  for (const auto& [option, is_given] : {Given{"--map-max", !options.map_max.empty()},
           Given{"--overlay", options.is_overlay}, Given{"--no-legend", options.has_no_legend}}) {
    if (!is_given || (are_drawn && !maps.empty())) continue;
    throw UsageError(
        fmt::format("{} is for maps that are drawn; give --map METRIC=FILE.png", option));
  }
  if (compared == Compared::pair) {
    for (const MapRequest& map : maps) {
      require_map_file(map);
      require_writable("--map", map.path, inputs);
    }
    return;
  }
  if (!maps.empty() && compared == Compared::encodes) require_names_that_differ(distorted);
  for (const MapRequest& map : maps) {
    require_map_folder(map);
    for (const std::string& input : inputs) {
      std::error_code error;  // set where one does not exist
      if (!fs::equivalent(map.path, input, error)) continue;
      throw UsageError(fmt::format("--map {}={} is one of the inputs", map.measure.name, map.path));
    }
  }
}

// Refuses options that do not fit together, before any file is read.
void check(const CompareOptions& options, const std::vector<std::string>& distorted,
    const std::vector<MapRequest>& maps, const std::string& format) {
  constexpr const char* kHelp = "similis compare --help shows how to call it";
  if (options.reference.empty()) throw UsageError(fmt::format("REF is missing; {}", kHelp));
  if (distorted.empty()) throw UsageError(fmt::format("DIST is missing; {}", kHelp));
  std::vector<std::string> inputs = distorted;
  inputs.push_back(options.reference);
  if (std::count(inputs.begin(), inputs.end(), "-") > 1) {
    throw UsageError(distorted.size() == 1 ? "only one of REF and DIST can be standard input"
                                           : "only one of the inputs can be standard input");
  }
  for (const std::string& path : distorted) {
    if (std::count(distorted.begin(), distorted.end(), path) > 1) {
      throw UsageError(fmt::format("{} is given twice", path));
    }
    require_both_kinds(options.reference, path);
  }
  const Compared compared = compared_of(options, distorted);
  if (compared == Compared::directories && distorted.size() > 1) {
    throw UsageError(
        "a directory is compared with one other directory; run the program once for each");
  }
  if (format == "jsonl" && compared == Compared::encodes) {
    throw UsageError("--format jsonl takes one pair of files; use json");
  }
  if (!is_standard_output(options.output)) require_writable("-o", options.output, inputs);
  check_maps(options, distorted, maps, inputs);
  if (!options.report.empty()) {
    require_pages("--report");
    require_writable("--report", options.report, inputs);
  }
  std::vector<std::pair<std::string, std::string>> outputs = {
      {"-o", options.output}, {"--report", options.report}};
  for (const MapRequest& map : maps) {
    if (compared == Compared::pair) outputs.emplace_back("--map " + map.measure.name, map.path);
  }
  require_files_differ(outputs);
}

// A run that failed does not touch `path`; it writes its scores so far beside it.
void write_report(const Report& report, Writer writer, const std::string& path) {
  const bool is_file = !is_standard_output(path) && !media::is_written_in_place(path);
  if (report.pairs.empty() && (is_file || report.compared != Compared::directories)) return;
  if (report.error.empty() || !is_file) {
    write_output(writer(report), path);
    return;
  }
  const std::string partial = path + ".partial";
  write_output(writer(report), partial);
  print_note(fmt::format("the scores so far are in {}", partial));
}

void score_directories(const Scoring& scoring, const std::string& reference,
    const std::string& distorted, Notes& notes, Report& report) {
  MatchedDirectories matched = match_directories(reference, distorted);
  report.unmatched = std::move(matched.unmatched);
  for (const UnmatchedFile& file : report.unmatched) {
    print_note(fmt::format(
        "{} has no match in {}", file.path, file.side == "reference" ? distorted : reference));
  }
  if (matched.pairs.empty()) {
    report.error = fmt::format("no file in {} has a match in {}", distorted, reference);
    print_error(report.error);
  }
  score_pairs(scoring, matched.pairs, notes, report);
}

int parse_worst(const std::string& text) {
  constexpr int kMost = 1000;
  const std::optional<int> count = text.empty() ? 1 : parse_number<int>(text);
  if (count && *count >= 1 && *count <= kMost) return *count;
  throw UsageError(fmt::format("--worst is \"{}\"; it must be a number from 1 to {}", text, kMost));
}

std::vector<Threshold> thresholds_of(
    const CompareOptions& options, const std::vector<Measure>& measures) {
  std::vector<Threshold> all =
      parse_thresholds("--fail-below", options.fail_below, Limit::at_least, measures);
  const std::vector<Threshold> above =
      parse_thresholds("--fail-above", options.fail_above, Limit::at_most, measures);
  all.insert(all.end(), above.begin(), above.end());
  return all;
}

int parse_retries(const std::string& text) {
  constexpr int kMost = 100;
  const std::optional<int> count = text.empty() ? 1 : parse_number<int>(text);
  if (count && *count >= 0 && *count <= kMost) return *count;
  throw UsageError(
      fmt::format("--retries is \"{}\"; it must be a number from 0 to {}", text, kMost));
}

// Refuses what is for a list of pairs alone.
void check_no_corpus(const CompareOptions& options) {
  using Given = std::pair<const char*, bool>;
  for (const auto& [option, is_given] :
      {Given{"--shard", !options.shard.empty()}, Given{"--retries", !options.retries.empty()},
          Given{"--frames-in-rows", options.frames_in_rows}}) {
    if (!is_given) continue;
    throw UsageError(
        fmt::format("{} is for --pairs, and for directories with -o FILE.jsonl", option));
  }
}

// Refuses what a list of pairs, or directories whose rows are appended to a file, do not take.
void check_corpus(const CompareOptions& options, const std::string& format) {
  const char* const what = options.pairs.empty() ? "--format jsonl of directories" : "--pairs";
  if (!options.pairs.empty() && !(options.reference.empty() && options.distorted.empty())) {
    throw UsageError("--pairs names the files; leave out REF and DIST");
  }
  if (format != "jsonl" || is_standard_output(options.output) ||
      media::is_written_in_place(options.output)) {
    throw UsageError(fmt::format("{} writes JSON Lines to a file; give -o FILE.jsonl", what));
  }
  using Given = std::pair<const char*, bool>;
  for (const auto& [option, is_given] : {Given{"--map", !options.maps.empty()},
           Given{"--report (similis report makes it from the results)", !options.report.empty()},
           Given{"--curve", !options.curves.empty()}, Given{"--worst", !options.worst.empty()}}) {
    if (is_given) throw UsageError(fmt::format("{} does not take {}", what, option));
  }
  require_writable("-o", options.output, {options.pairs});
}

// The list, or the pairs of two directories.
PairList pairs_of(const CompareOptions& options) {
  if (!options.pairs.empty()) return read_pair_list(options.pairs);
  PairList list;
  const MatchedDirectories matched =
      match_directories(options.reference, options.distorted.front());
  for (const FilePair& pair : matched.pairs) list.add(pair.reference, pair.distorted);
  for (const UnmatchedFile& file : matched.unmatched) {
    print_note(fmt::format("{} has no match in {}", file.path,
        file.side == "reference" ? options.distorted.front() : options.reference));
  }
  require(list.size() > 0, "no file in {} has a match in {}", options.distorted.front(),
      options.reference);
  return list;
}

Scoring scoring_of(const CompareOptions& options, const std::vector<std::string>& metrics) {
  Scoring scoring{.by_default = options.metrics.empty(), .device = parse_device(options.device)};
  scoring.exec.queue = queue_of(scoring.device);
  scoring.measures = requested_measures(metrics);
  for (const std::string& map : options.maps) {
    scoring.maps.push_back(
        requested_map(map, scoring.by_default ? std::vector<std::string>() : metrics));
  }
  scoring.map_style = parse_map_style(options.map_max, options.is_overlay, !options.has_no_legend);
  if (!options.background.empty())
    scoring.inputs.rules.background = parse_color(options.background);
  scoring.inputs.selection = parse_frame_selection(options.frames, options.every, options.offset);
  const bool looks_back = std::any_of(scoring.measures.begin(), scoring.measures.end(),
      [](const Measure& measure) { return measure.clip && measure.clip->looks_back(); });
  if (looks_back) scoring.shown_every = std::exchange(scoring.inputs.selection.every, 1);
  scoring.inputs.raw = parse_raw_video(options.size, options.pixel_format);
  scoring.inputs.rate = parse_rate(options.fps);
  if (scoring.inputs.raw) scoring.inputs.raw->rate = scoring.inputs.rate;
  scoring.inputs.rules.adaptation = parse_adaptation(options.adaptation);
  if (options.not_finite != "error" && options.not_finite != "mask") {
    throw UsageError(fmt::format("--nan is \"{}\"; it must be error or mask", options.not_finite));
  }
  scoring.inputs.rules.masks_not_finite = options.not_finite == "mask";
  if (scoring.inputs.rules.adaptation->matches_rate && scoring.inputs.selection.offset != 0) {
    throw UsageError("--match-rate pairs frames by time; it does not take --offset");
  }
  const bool takes_any_depth = std::any_of(scoring.measures.begin(), scoring.measures.end(),
      [](const Measure& measure) { return measure.takes_as_read; });
  if (takes_any_depth) scoring.inputs.depths = Depths::may_differ;
  return scoring;
}

int status_of(const Report& report, int signal, const std::vector<Threshold>& thresholds) {
  if (signal != 0 && !report.error.empty()) return kSignalled + signal;  // it was not too late
  const std::vector<std::string> missed = missed_thresholds(thresholds, report);
  for (const std::string& line : missed) print_error(line);
  if (!report.error.empty()) return kFailed;
  return missed.empty() ? 0 : kMissedThreshold;
}

}  // namespace

int compare(const CompareOptions& given) {
  CompareOptions options = given;
  if (options.is_quiet) silence_notes();
  if (!given.first_distorted.empty()) {
    options.distorted.insert(options.distorted.begin(), given.first_distorted);
  }
  Interruption interruption;  // before any thread, also of a GPU's driver
  const std::string format = format_of(options);
  const Writer writer = find_writer(format);
  const std::vector<std::string> metrics =
      split_metrics(options.metrics.empty() ? default_metrics() : options.metrics);
  Scoring scoring = scoring_of(options, metrics);
  const std::vector<Threshold> thresholds = thresholds_of(options, scoring.measures);
  const int threads = parse_threads(options.threads);
  Report report;
  report.curves = parse_curves(options.curves);
  report.worst_count = parse_worst(options.worst);
  const std::vector<std::string> distorted = all_distorted(options, report.curves);
  const bool is_corpus =
      !options.pairs.empty() || (format == "jsonl" && is_directory(options.reference));
  if (options.pairs.empty()) check(options, distorted, scoring.maps, format);
  is_corpus ? check_corpus(options, format) : check_no_corpus(options);

  PageImages images;
  if (!options.report.empty() && compared_of(options, distorted) == Compared::pair) {
    scoring.images = &images;
  }
  scoring.interruption = &interruption;
  std::optional<ThreadPool> pool;
  if (threads > 0) scoring.exec.runner = pool.emplace(threads).runner();
  scoring.threads = threads > 0 ? threads : default_threads();

  if (is_corpus) {
    const CorpusOptions corpus{.output = options.output,
        .shard = parse_shard(options.shard),
        .retries = parse_retries(options.retries),
        .frames_in_rows = options.frames_in_rows,
        .thresholds = thresholds};
    return score_corpus(scoring, pairs_of(options), corpus);
  }
  report.compared = compared_of(options, distorted);
  scoring.are_maps_in_folders = report.compared != Compared::pair;
  for (const MapRequest& map : scoring.maps) {
    if (scoring.are_maps_in_folders) make_map_folder(map);
  }
  report.device = device_name(scoring.device);
  report.selection = scoring.shown();
  std::optional<StreamedResults> stream;
  if (report.compared == Compared::pair && (format == "csv" || format == "jsonl")) {
    using Form = StreamedResults::Form;
    stream.emplace(
        format == "csv" ? Form::csv : Form::json_lines, options.output, scoring.measures, report);
    scoring.on_frame = [&stream](const PairScores& scores) { stream->add(scores); };
  }
  Notes notes;
  if (report.compared == Compared::directories) {
    score_directories(scoring, options.reference, distorted.front(), notes, report);
  } else if (report.compared == Compared::encodes) {
    score_encodes(scoring, options.reference, distorted, notes, report);
  } else {
    score_pairs(scoring, {{options.reference, distorted.front()}}, notes, report);
  }
  for (const std::string& line : notes.lines()) print_note(line);
  require(!report.names.empty() || !report.error.empty(),
      "none of the default metrics can score {}; choose metrics with -m",
      display_name(distorted.front()));
  if (stream) {
    const std::string partial = stream->finish(report);
    if (!partial.empty()) print_note(fmt::format("the scores so far are in {}", partial));
  } else {
    write_report(report, writer, options.output);
  }
  if (!options.report.empty() && !report.pairs.empty()) {
    write_compare_page(report, options.command, images, options.report);
  }
  return status_of(report, interruption.signal(), thresholds);
}

}  // namespace similis::cli
