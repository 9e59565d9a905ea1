// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <optional>

#include "src/cli/compare/report.h"
#include "src/cli/compare/statistics.h"
#include "src/cli/terminal/aligned_rows.h"

namespace similis::cli {
namespace {

constexpr double kSmallestFixed = 1e-4;  // smaller numbers need more than six decimals

std::string cell(double value) {
  if (std::isnan(value)) return "-";
  if (value != 0 && std::abs(value) < kSmallestFixed) return fmt::format("{:.4g}", value);
  return fmt::format("{:.6f}", value);
}

std::string cell(const std::optional<double>& value) { return value ? cell(*value) : "-"; }

std::string table_of_picture(const Report& report) {
  std::vector<Row> rows = {{"metric", "value"}};
  for (std::size_t i = 0; i < report.names.size(); ++i) {
    rows.push_back({report.names[i], cell(report.pairs.front().frames.front().values[i])});
  }
  return aligned(rows);
}

std::string table_of_video(const Report& report) {
  std::vector<Row> rows = {{"metric", "mean", "min", "p5", "median", "max", "stdev"}};
  for (std::size_t i = 0; i < report.names.size(); ++i) {
    const Statistics all = statistics(scores_of(report.pairs, i));
    rows.push_back({report.names[i], cell(all.mean), cell(all.min), cell(all.p5), cell(all.median),
        cell(all.max), cell(all.stdev)});
  }
  return aligned(rows);
}

std::string table_of_directories(const Report& report) {
  std::vector<Row> rows = {{"distorted"}}, pooled = {{"mean"}, {"min"}, {"max"}};
  for (std::size_t i = 0; i < report.names.size(); ++i) {
    rows.front().push_back(report.names[i]);
    const Statistics all = statistics(scores_of(report.pairs, i));
    pooled[0].push_back(cell(all.mean));
    pooled[1].push_back(cell(all.min));
    pooled[2].push_back(cell(all.max));
  }
  for (const ScoredPair& pair : report.pairs) {
    Row row = {std::filesystem::path(pair.files.distorted).filename().string()};
    for (std::size_t i = 0; i < report.names.size(); ++i) {
      row.push_back(cell(statistics(scores_of({pair}, i)).mean));
    }
    rows.push_back(row);
  }
  if (report.pairs.size() < 2) return aligned(rows);
  rows.push_back(Row(report.names.size() + 1));
  rows.insert(rows.end(), pooled.begin(), pooled.end());
  return aligned(rows);
}

}  // namespace

std::string to_table(const Report& report) {
  if (report.pairs.empty()) return "";
  if (report.of_directories) return table_of_directories(report);
  const bool is_moving = report.chroma || report.pairs.front().counts.reference;
  return is_moving ? table_of_video(report) : table_of_picture(report);
}

}  // namespace similis::cli
