// SPDX-License-Identifier: Apache-2.0
#include "src/cli/compare/scoring.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <compare>
#include <future>
#include <map>
#include <memory>
#include <utility>
#include <variant>

#include "src/cli/compare/heat_map.h"
#include "src/cli/compare/middle_slices.h"
#include "src/cli/device.h"
#include "src/cli/inputs/video_planes.h"
#include "src/cli/terminal/progress.h"
#include "src/core/counted.h"
#include "src/core/require.h"
#include "src/media/picture/formats/png_writer.h"

namespace similis::cli {
namespace {

constexpr int kWholeFrame = -1;  // the score is that of a picture or of a whole frame

// Identifies a number of the results: its measure, its plane and its part of the measure.
struct ScoreKey {
  std::size_t measure = 0;
  int plane = kWholeFrame;
  std::size_t part = 0;
  friend auto operator<=>(const ScoreKey&, const ScoreKey&) = default;
};
using FrameValues = std::vector<std::pair<ScoreKey, double>>;

struct Frame {
  std::int64_t number;
  FrameValues values;
};

// The settings of each measure that has scored a pair.
using MeasureSettings = std::map<std::size_t, Settings>;

// The scores of one pair. Columns and names are known only when all pairs are scored.
struct Scores {
  ScoredPair pair;
  MeasureSettings settings;
  std::optional<int> bit_depth, channels;
  std::optional<std::string> chroma;
  std::optional<std::array<std::int64_t, 3>> voxels;
  std::vector<Frame> frames;
};

void require_code_values(const Measure& measure, const FramePair& frames) {
  if (!measure.takes_as_read && !frames.refusal.empty()) throw InvalidArgument(frames.refusal);
}

// The settings that the measure had for this pair of frames.
Settings settings_for(const Measure& measure, const FramePair& frames) {
  return measure.media_settings ? measure.media_settings(frames.as_read)
                                : measure.settings(frames.data_range);
}

// Adds all numbers of a measure to `values`, and its settings; false if the measure is skipped.
bool score(const Scoring& scoring, ScoreKey key, const std::string& name, const FramePair& frames,
    Notes& notes, FrameValues& values, MeasureSettings& settings) {
  const Measure& measure = scoring.measures[key.measure];
  require_code_values(measure, frames);
  try {
    require_runs_on(measure, scoring.device);
    for (const double value : all_values(measure, frames, scoring.exec)) {
      values.emplace_back(key, value);
      ++key.part;
    }
    if (!settings.contains(key.measure)) {
      settings[key.measure] = settings_for(measure, frames);
    }
    return true;
  } catch (const InvalidArgument& error) {
    if (!scoring.by_default) throw InvalidArgument(fmt::format("{}: {}", name, error.what()));
    notes.add(name, fmt::format("{} skipped: {}", measure.name, error.what()));
    return false;
  }
}

media::Image draw_map(const Scoring& scoring, const std::string& name, const FramePair& frames) {
  const MapRequest& map = *scoring.map;
  require_code_values(map.measure, frames);
  try {
    const double value = map.measure.value(frames, scoring.exec);
    const Tensor values = on_device(map.measure.map(frames, scoring.exec), {}, scoring.exec);
    return heat_map(middle_slices(values, map.range.best), map.range,
        fmt::format("{} {:.4f}", map.measure.name, value));
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("{}: {}", name, error.what()));
  }
}

// Runs all measures on one pair of frames.
FrameValues score_frames(const Scoring& scoring, const FramePair& pair, const std::string& name,
    Notes& notes, MeasureSettings& settings) {
  FrameValues values;
  const FramePair frames = frames_on_device(pair, scoring.device, scoring.exec);
  for (std::size_t i = 0; i < scoring.measures.size(); ++i) {
    score(scoring, {.measure = i}, name, frames, notes, values, settings);
  }
  return values;
}

void write_map(const Scoring& scoring, const FramePair& frames, const std::string& name) {
  media::write_png(scoring.map->path,
      draw_map(scoring, name, frames_on_device(frames, scoring.device, scoring.exec)));
}

// Scores a pair of pictures, or of frames of animations.
void score_pictures(const Scoring& scoring, const PicturePair& pictures, std::int64_t number,
    Notes& notes, Scores& scores) {
  const std::string name = display_name(scores.pair.files.distorted);
  scores.bit_depth = pictures.bit_depth;
  scores.channels = pictures.channels;
  scores.pair.differences = pictures.differences;
  FrameValues values = score_frames(scoring, pictures.frames, name, notes, scores.settings);
  for (const auto& [key, sentence] : pictures.differences) {
    if (key == "color" && scores.frames.empty()) notes.add(name, sentence);
  }
  scores.frames.push_back({number, std::move(values)});
}

void score_picture_pair(
    const Scoring& scoring, const PicturePair& pictures, Notes& notes, Scores& scores) {
  score_pictures(scoring, pictures, 0, notes, scores);
  const std::string name = display_name(scores.pair.files.distorted);
  if (scoring.map) write_map(scoring, pictures.frames, name);
}

// Scores the frames of two videos. A metric for which the planes are too small is tried in the
// first frame only.
class VideoScorer {
 public:
  VideoScorer(const Scoring& scoring, const VideoPair& videos, const std::string& name)
      : scoring_(scoring), videos_(videos), name_(name), planes_(videos.format()) {
    for (std::size_t i = 0; i < scoring.measures.size(); ++i) {
      const VideoPlanes takes = scoring.measures[i].video_planes;
      const bool is_of_each = takes == VideoPlanes::all;
      const int count = is_of_each ? videos.format().pixels.color_planes : 1;
      for (int plane = 0; plane < count; ++plane)
        keys_.push_back({i, is_of_each ? plane : kWholeFrame});
      if (takes == VideoPlanes::frame) continue;
      videos.require_same_depth();
      planes_taken_ = std::max(planes_taken_, count);
    }
  }

  Frame score_frame(Notes& notes, MeasureSettings& settings) {
    Frame frame{videos_.frame(), {}};
    std::array<FramePair, 3> planes;
    for (int plane = 0; plane < planes_taken_; ++plane) {
      planes[static_cast<std::size_t>(plane)] = frames_on_device(
          planes_.plane(videos_, plane, scoring_.exec), scoring_.device, scoring_.exec);
    }
    const FramePair whole = whole_frame();
    std::erase_if(keys_, [&](const ScoreKey& key) {
      const bool is_whole = scoring_.measures[key.measure].video_planes == VideoPlanes::frame;
      const auto plane = static_cast<std::size_t>(std::max(key.plane, 0));
      const FramePair& frames = is_whole ? whole : planes[plane];
      return !score(scoring_, key, name_, frames, notes, frame.values, settings);
    });
    return frame;
  }

 private:
  FramePair whole_frame() const {
    FramePair pair;
    pair.device = scoring_.device;
    pair.as_read.video = std::make_shared<const std::array<VideoFrameAsRead, 2>>(std::array{
        VideoFrameAsRead{&videos_.reference(), &videos_.format(), videos_.reference_name()},
        VideoFrameAsRead{
            &videos_.distorted(), &videos_.distorted_format(), videos_.distorted_name()}});
    return pair;
  }

  const Scoring& scoring_;
  const VideoPair& videos_;
  std::string name_;
  VideoPlanePairs planes_;
  std::vector<ScoreKey> keys_;
  int planes_taken_ = 0;
};

void note_counts(
    const FilePair& files, const FrameCounts& counts, std::size_t scored, Notes& notes) {
  if (!counts.reference || *counts.reference == *counts.distorted) return;
  notes.add(display_name(files.distorted),
      fmt::format("has {} but {} has {}; scored {}", counted(*counts.distorted, "frame"),
          display_name(files.reference), *counts.reference, counted(scored, "frame")));
}

// Notes or refuses the numbers of frames, after the last frame of videos or animations.
void finish(const FrameCounts& counts, Notes& notes, Scores& scores) {
  const FilePair& files = scores.pair.files;
  scores.pair.counts = counts;
  const std::string reference = display_name(files.reference);
  const std::string distorted = display_name(files.distorted);
  if (scores.frames.empty() && counts.reference) {
    throw InvalidArgument(fmt::format("no frame to compare: {} has {} and {} has {}", reference,
        counted(*counts.reference, "frame"), distorted, counted(*counts.distorted, "frame")));
  }
  require(!scores.frames.empty(), "no frame to compare in {} and {}", reference, distorted);
  note_counts(files, counts, scores.frames.size(), notes);
}

// These two add to `scores` frame by frame, so that frames scored before an error are kept.
void score_videos(
    const Scoring& scoring, VideoPair& videos, bool shows_progress, Notes& notes, Scores& scores) {
  const std::string name = display_name(scores.pair.files.distorted);
  const media::PixelFormat& pixels = videos.format().pixels;
  require(!scoring.map, "{} is a video; --map takes pictures or volumes", name);
  scores.bit_depth = pixels.bit_depth;
  scores.chroma = chroma_name(pixels);
  const int other_depth = videos.distorted_format().pixels.bit_depth;
  if (other_depth != pixels.bit_depth) {
    scores.pair.differences.emplace_back(
        "bit_depth", fmt::format("reference has {} bits per sample, distorted {}", pixels.bit_depth,
                         other_depth));
  }
  VideoScorer scorer(scoring, videos, name);
  Progress progress("frames", shows_progress ? videos.expected_pairs() : 0);
  while (videos.next()) {
    scores.frames.push_back(scorer.score_frame(notes, scores.settings));
    progress.step();
  }
  finish(videos.counts(), notes, scores);
}

void score_animations(const Scoring& scoring, AnimationPair& animations, bool shows_progress,
    Notes& notes, Scores& scores) {
  require(!scoring.map, "{} is an animation; --map takes pictures or volumes",
      display_name(scores.pair.files.distorted));
  Progress progress("frames", shows_progress ? animations.expected_pairs() : 0);
  while (const auto pictures = animations.next(scoring.exec)) {
    score_pictures(scoring, *pictures, animations.frame(), notes, scores);
    progress.step();
  }
  finish(animations.counts(), notes, scores);
}

void score_volumes(const Scoring& scoring, VolumePair& volumes, bool shows_progress, Notes& notes,
    Scores& scores) {
  const std::string name = display_name(scores.pair.files.distorted);
  require(!scoring.inputs.raw, "{} is a volume; --size and --pix-fmt are for video", name);
  require(!scoring.map || volumes.expected_pairs() == 1,
      "{} has several frames; --map takes pictures, or volumes of one frame", name);
  scores.channels = volumes.channels();
  scores.voxels = volumes.grid().size;
  scores.pair.differences = volumes.differences();
  for (const auto& [key, sentence] : volumes.differences()) {
    notes.add(display_name(key.starts_with("reference") ? scores.pair.files.reference
                                                        : scores.pair.files.distorted),
        sentence);
  }
  Progress progress("frames", shows_progress ? volumes.expected_pairs() : 0);
  while (const std::optional<FramePair> frames = volumes.next()) {
    scores.frames.push_back(
        {volumes.frame(), score_frames(scoring, *frames, name, notes, scores.settings)});
    if (scoring.map) write_map(scoring, *frames, name);
    progress.step();
  }
  const FrameCounts counts = volumes.counts();
  const bool is_single = counts.reference == 1 && counts.distorted == 1;
  finish(is_single ? FrameCounts{} : counts, notes, scores);
}

std::string score_name(const Scoring& scoring, const ScoreKey& key) {
  const Measure& measure = scoring.measures[key.measure];
  std::string name = measure.name;
  if (key.plane != kWholeFrame) name += fmt::format("-{}", plane_name(key.plane));
  if (!measure.parts[key.part].empty()) name += fmt::format("-{}", measure.parts[key.part]);
  return name;
}

// The column of each number of the results, in the order of the measures.
using Columns = std::map<ScoreKey, std::size_t>;

Columns used_columns(const std::vector<Scores>& all) {
  Columns columns;
  for (const Scores& scores : all) {
    for (const Frame& frame : scores.frames) {
      for (const auto& [key, value] : frame.values) columns[key] = 0;
    }
  }
  std::size_t next = 0;
  for (auto& [key, column] : columns) column = next++;
  return columns;
}

FrameScores row_of(const Frame& frame, const Columns& columns) {
  FrameScores row{frame.number, std::vector<std::optional<double>>(columns.size())};
  for (const auto& [key, value] : frame.values) row.values[columns.at(key)] = value;
  return row;
}

// A property that all pairs share; empty if they differ.
template <class T>
std::optional<T> common(const std::vector<Scores>& all, std::optional<T> Scores::*member) {
  std::optional<T> value;
  for (const Scores& scores : all) {
    if (&scores != &all.front() && scores.*member != value) return std::nullopt;
    value = scores.*member;
  }
  return value;
}

// A measure's settings in all pairs that it has scored, with "null" for each that is not the same
// in all of them. Empty if it has scored none.
std::optional<Settings> common_settings(const std::vector<Scores>& all, std::size_t measure) {
  std::optional<Settings> merged;
  const auto find = [](Settings& settings, const std::string& name) {
    return std::find_if(settings.begin(), settings.end(),
        [&](const auto& setting) { return setting.first == name; });
  };
  for (const Scores& scores : all) {
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

void lay_out(const Scoring& scoring, std::vector<Scores> all, Report& report) {
  report.bit_depth = common(all, &Scores::bit_depth);
  report.channels = common(all, &Scores::channels);
  report.chroma = common(all, &Scores::chroma);
  report.voxels = common(all, &Scores::voxels);
  const Columns columns = used_columns(all);
  for (const auto& [key, column] : columns) report.names.push_back(score_name(scoring, key));
  for (std::size_t i = 0; i < scoring.measures.size(); ++i) {
    const std::optional<Settings> shared = common_settings(all, i);
    if (!shared) continue;
    report.metric_settings.push_back({scoring.measures[i].name, *shared});
    for (Scores& scores : all) {
      const Settings own = without(scores.settings[i], *shared);
      if (!own.empty()) scores.pair.own_settings.push_back({scoring.measures[i].name, own});
    }
  }
  for (Scores& scores : all) {
    for (const Frame& frame : scores.frames) {
      scores.pair.frames.push_back(row_of(frame, columns));
    }
    report.pairs.push_back(std::move(scores.pair));
  }
}

}  // namespace

void score_pairs(
    const Scoring& scoring, const std::vector<FilePair>& files, Notes& notes, Report& report) {
  const auto policy = scoring.threads > 1 ? std::launch::async : std::launch::deferred;
  const auto open = [&](std::size_t i) {
    return std::async(policy, [&scoring, &files, i] {
      return open_media_pair(files[i], scoring.inputs, scoring.threads, scoring.exec);
    });
  };
  std::vector<Scores> all;
  const bool is_single = files.size() == 1;
  Progress progress("pairs", static_cast<std::int64_t>(files.size()));
  std::future<MediaPair> next = files.empty() ? std::future<MediaPair>() : open(0);
  for (std::size_t i = 0; i < files.size(); ++i) {
    Scores scores{.pair = {.files = files[i]}};
    try {
      std::future<MediaPair> current = std::move(next);
      if (i + 1 < files.size()) next = open(i + 1);
      const MediaPair media = current.get();
      if (const auto* videos = std::get_if<std::unique_ptr<VideoPair>>(&media)) {
        score_videos(scoring, **videos, is_single, notes, scores);
      } else if (const auto* animations = std::get_if<std::unique_ptr<AnimationPair>>(&media)) {
        score_animations(scoring, **animations, is_single, notes, scores);
      } else if (const auto* volumes = std::get_if<std::unique_ptr<VolumePair>>(&media)) {
        score_volumes(scoring, **volumes, is_single, notes, scores);
      } else {
        require(!is_single || !scoring.inputs.are_for_video(),
            "{} is a picture; --frames, --every, --offset, --size and --pix-fmt are for video",
            display_name(files[i].distorted));
        score_picture_pair(scoring, std::get<PicturePair>(media), notes, scores);
      }
    } catch (const Error& error) {
      progress.clear();
      print_error(error.what());
      report.error += (report.error.empty() ? "" : "; ") + std::string(error.what());
    }
    if (!scores.frames.empty()) all.push_back(std::move(scores));
    progress.step();
  }
  lay_out(scoring, std::move(all), report);
}

}  // namespace similis::cli
