// SPDX-License-Identifier: Apache-2.0
#include "src/cli/scoring.h"

#include <fmt/format.h>

#include <cstddef>
#include <future>
#include <limits>

#include "src/cli/heat_map.h"
#include "src/cli/progress.h"
#include "src/media/png_writer.h"

namespace similis::cli {
namespace {

double score(const Scoring& scoring, const Measure& measure, const std::string& name,
    const FramePair& frames, Notes& notes) {
  try {
    return measure.value(frames, scoring.exec);
  } catch (const InvalidArgument& error) {
    if (!scoring.by_default) throw InvalidArgument(fmt::format("{}: {}", name, error.what()));
    notes.add(name, fmt::format("{} left out: {}", measure.name, error.what()));
    return std::numeric_limits<double>::quiet_NaN();
  }
}

media::Image draw_map(const Scoring& scoring, const std::string& name, const FramePair& frames) {
  const MapRequest& map = *scoring.map;
  try {
    const double value = map.measure.value(frames, scoring.exec);
    return heat_map(map.measure.map(frames, scoring.exec), map.range,
        fmt::format("{} {:.4f}", map.measure.name, value));
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("{}: {}", name, error.what()));
  }
}

// Remembers depth and channels as long as all pairs have the same.
void note_kind(const PicturePair& pictures, Report& report) {
  const auto keep = [&](std::optional<int>& known, int value) {
    if (report.pairs.empty()) known = value;
    if (known != value) known.reset();
  };
  keep(report.bit_depth, pictures.bit_depth);
  keep(report.channels, pictures.channels);
}

}  // namespace

ScoredPair score_pair(
    const Scoring& scoring, const FilePair& files, const PicturePair& pictures, Notes& notes) {
  const std::string name = spoken_name(files.distorted);
  ScoredPair scored{files, pictures.differences, {FrameScores{}}};
  for (const Measure& measure : scoring.measures) {
    scored.frames[0].values.push_back(score(scoring, measure, name, pictures.frames, notes));
  }
  if (scoring.map) {
    media::write_png(scoring.map->path, draw_map(scoring, name, pictures.frames));
  }
  for (const auto& [key, sentence] : pictures.differences) {
    if (key == "color") notes.add(name, sentence);
  }
  return scored;
}

void score_pairs(
    const Scoring& scoring, const std::vector<FilePair>& files, Notes& notes, Report& report) {
  const auto policy = scoring.threads > 1 ? std::launch::async : std::launch::deferred;
  const auto read = [&](std::size_t i) {
    return std::async(policy, [&scoring, &files, i] {
      return read_picture_pair(
          files[i].reference, files[i].distorted, scoring.background, scoring.exec);
    });
  };
  Progress progress(static_cast<std::int64_t>(files.size()));
  std::future<PicturePair> next = files.empty() ? std::future<PicturePair>() : read(0);
  for (std::size_t i = 0; i < files.size(); ++i) {
    try {
      std::future<PicturePair> current = std::move(next);
      if (i + 1 < files.size()) next = read(i + 1);
      const PicturePair pictures = current.get();
      ScoredPair scored = score_pair(scoring, files[i], pictures, notes);
      note_kind(pictures, report);
      report.pairs.push_back(std::move(scored));
    } catch (const Error& error) {
      progress.clear();
      print_error(error.what());
      report.error += (report.error.empty() ? "" : "; ") + std::string(error.what());
    }
    progress.step();
  }
}

}  // namespace similis::cli
