// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <optional>

#include "src/cli/encodes/curves.h"
#include "src/cli/results/report.h"
#include "src/cli/results/worst_frames.h"
#include "src/cli/terminal/aligned_rows.h"
#include "src/cli/terminal/notes.h"

namespace similis::cli {
namespace {

constexpr double kSmallestFixed = 1e-4;  // smaller numbers need more than six decimals

std::string cell(double value) {
  if (std::isnan(value)) return "-";
  if (value != 0 && std::abs(value) < kSmallestFixed) return fmt::format("{:.4g}", value);
  return fmt::format("{:.6f}", value);
}

std::string cell(const std::optional<double>& value) { return value ? cell(*value) : "-"; }

std::string file_cell(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  return one_line(name.empty() ? path : name);
}

std::string table_of_picture(const Report& report) {
  std::vector<Row> rows = {{"metric", "value"}};
  for (std::size_t i = 0; i < report.names.size(); ++i) {
    rows.push_back({report.names[i], cell(report.pairs.front().frames.front().values[i])});
  }
  return aligned(rows);
}

std::string list_of_worst(const Report& report) {
  std::string text;
  for (std::size_t i = 0; i < report.names.size(); ++i) {
    std::vector<Row> rows = {{fmt::format("worst frames of {}", report.names[i]), "value"}};
    for (const WorstFrame& frame :
        worst_frames(report.pairs.front(), i, report.kinds[i].is_error, report.worst_count)) {
      rows.push_back({worst_frame_text(frame), cell(frame.value)});
    }
    text.append("\n").append(aligned(rows));
  }
  return text;
}

std::string table_of_video(const Report& report) {
  const ScoredPair& pair = report.pairs.front();
  std::vector<Row> rows = {
      {"metric", "mean", "min", "worst 5%", "median", "max", "stdev", "worst frame"}};
  for (std::size_t i = 0; i < report.names.size(); ++i) {
    const Statistics all = statistics_of(report, pair, i);
    const auto worst = worst_frames(pair, i, report.kinds[i].is_error, 1);
    rows.push_back({report.names[i], cell(all.mean), cell(all.min),
        cell(all.worst_twentieth(report.kinds[i].is_error)), cell(all.median), cell(all.max),
        cell(all.stdev), worst.empty() ? "-" : worst_frame_text(worst.front())});
  }
  return aligned(rows) + (report.worst_count > 1 ? list_of_worst(report) : "");
}

std::string table_of_directories(const Report& report) {
  std::vector<Row> rows = {{"distorted"}}, pooled = {{"mean"}, {"min"}, {"max"}};
  for (std::size_t i = 0; i < report.names.size(); ++i) {
    rows.front().push_back(report.names[i]);
    const Statistics all = statistics_of_pairs(report, i);
    pooled[0].push_back(cell(all.mean));
    pooled[1].push_back(cell(all.min));
    pooled[2].push_back(cell(all.max));
  }
  for (const ScoredPair& pair : report.pairs) {
    Row row = {file_cell(pair.files.distorted)};
    for (std::size_t i = 0; i < report.names.size(); ++i) {
      row.push_back(cell(statistics_of(report, pair, i).mean));
    }
    rows.push_back(row);
  }
  if (report.pairs.size() < 2) return aligned(rows);
  rows.push_back(Row(report.names.size() + 1));
  rows.insert(rows.end(), pooled.begin(), pooled.end());
  return aligned(rows);
}

std::string rate_cell(const std::optional<EncodedSize>& size, bool are_pictures) {
  if (!size) return "-";
  if (are_pictures) return fmt::format("{:.4f}", *size->bits_per_pixel);
  return size->bits_per_second ? fmt::format("{:.1f}", *size->bits_per_second / 1000) : "-";
}

std::string table_of_curves(const Report& report) {
  std::vector<Row> rows = {{"curve", "metric", "BD-rate", "BD-quality"}};
  std::string notes;
  for (const CurveDifference& found : curve_differences(report)) {
    const BdDifference& difference = found.difference;
    rows.push_back({one_line(found.curve), found.name,
        difference.rate ? fmt::format("{:+.2f} %", *difference.rate) : "-",
        difference.quality ? fmt::format("{:+.4f}", *difference.quality) : "-"});
    if (difference.note.empty()) continue;
    notes += fmt::format("{}, {}: {}\n", one_line(found.curve), found.name, difference.note);
  }
  return fmt::format("\nagainst {}, interpolated by PCHIP:\n{}{}",
      one_line(report.curves.front().name), aligned(rows), notes);
}

std::string table_of_encodes(const Report& report) {
  // Sequences of pictures whose rate is known have both.
  const bool are_pictures =
      std::all_of(report.pairs.begin(), report.pairs.end(), [](const ScoredPair& pair) {
        return !pair.size || (pair.size->bits_per_pixel && !pair.size->bits_per_second);
      });
  std::vector<Row> rows = {{"distorted", "bytes", are_pictures ? "bits/pixel" : "kbit/s"}};
  const bool moves = is_moving(report.pairs.front());
  for (const std::string& name : report.names) {
    rows.front().push_back(name);
    if (moves) rows.front().emplace_back("worst 5%");
  }
  for (const ScoredPair& pair : report.pairs) {
    Row row = {file_cell(pair.files.distorted),
        pair.size ? fmt::format("{}", pair.size->bytes) : "-", rate_cell(pair.size, are_pictures)};
    for (std::size_t i = 0; i < report.names.size(); ++i) {
      const Statistics all = statistics_of(report, pair, i);
      row.push_back(cell(all.mean));
      if (moves) row.push_back(cell(all.worst_twentieth(report.kinds[i].is_error)));
    }
    rows.push_back(row);
  }
  return aligned(rows) + (report.curves.size() > 1 ? table_of_curves(report) : "");
}

}  // namespace

std::string to_table(const Report& report) {
  if (report.pairs.empty()) return "";
  if (report.compared == Compared::directories) return table_of_directories(report);
  if (report.compared == Compared::encodes) return table_of_encodes(report);
  return is_moving(report.pairs.front()) ? table_of_video(report) : table_of_picture(report);
}

}  // namespace similis::cli
