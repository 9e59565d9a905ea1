// SPDX-License-Identifier: Apache-2.0
#include "src/cli/compare/frame_scoring.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <utility>

#include "src/cli/device.h"
#include "src/cli/maps/map_file.h"
#include "src/core/counted.h"
#include "src/core/require.h"

namespace similis::cli {
namespace {

void require_code_values(const Measure& measure, const FramePair& frames) {
  if (!measure.takes_as_read && !frames.refusal.empty()) throw InvalidArgument(frames.refusal);
}

// The error with the file's name in front, unless it names one of the two already.
InvalidArgument named(const std::string& error, const FilePair& files) {
  for (const std::string& path : {files.reference, files.distorted}) {
    if (error.find(display_name(path)) != std::string::npos) return InvalidArgument(error);
  }
  return InvalidArgument(fmt::format("{}: {}", display_name(files.distorted), error));
}

// The settings that the measure had for this pair of frames.
Settings settings_for(const Measure& measure, const FramePair& frames) {
  return measure.media_settings ? measure.media_settings(frames.as_read)
                                : measure.settings(frames.data_range);
}

// Adds all numbers of a measure to `values`.
void add_values(const Measure& measure, ScoreKey key, const FramePair& frames,
    const Execution& exec, FrameValues& values) {
  for (const double value : all_values(measure, frames, exec)) {
    values.emplace_back(key, value);
    ++key.part;
  }
}

// Adds all numbers of a measure to `values`, and its settings; false if the measure is skipped.
bool score(const Scoring& scoring, ScoreKey key, const FilePair& files, const FramePair& frames,
    Notes& notes, FrameValues& values, MeasureSettings& settings) {
  const Measure& measure = scoring.measures[key.measure];
  require_code_values(measure, frames);
  try {
    require_runs_on(measure, scoring.device);
    add_values(measure, key, frames, scoring.exec, values);
    if (!settings.contains(key.measure)) {
      settings[key.measure] = settings_for(measure, frames);
    }
    return true;
  } catch (const InvalidArgument& error) {
    if (!scoring.by_default) throw named(error.what(), files);
    notes.add(
        display_name(files.distorted), fmt::format("{} skipped: {}", measure.name, error.what()));
    return false;
  }
}

// The clip of the measures that look at several frames; empty if there are none.
ClipScorer clip_of(const Scoring& scoring, const VideoPair& videos, const FilePair& files) {
  try {
    for (const Measure& measure : scoring.measures) {
      if (measure.clip) require_runs_on(measure, scoring.device);
    }
    return ClipScorer(scoring.measures, videos.format());
  } catch (const InvalidArgument& error) {
    throw named(error.what(), files);
  }
}

// A map of each measure, for the page of --report.
std::vector<MapRequest> requests_of_page(const Scoring& scoring) {
  std::vector<MapRequest> requests;
  if (scoring.images == nullptr) return requests;
  for (std::size_t i = 0; i < scoring.measures.size(); ++i) {
    requests.push_back({.measure = scoring.measures[i], .of_measure = i});
  }
  return requests;
}

// The score by which the worst frame is chosen, if -m asked for it: that of luma or the whole
// frame.
std::optional<double> score_in(const ScoredFrame& frame, const MapRequest& map) {
  for (const auto& [key, value] : frame.values) {
    if (key.measure == map.of_measure && std::max(key.plane, 0) == 0 && key.part == 0) return value;
  }
  return std::nullopt;
}

void write_map_of(const Scoring& scoring, const MapRequest& map, const FramePair& pair,
    const FilePair& files, const media::Grid* grid) {
  require_code_values(map.measure, pair);
  try {
    write_map(map, scoring.map_style, map_path(map, files.distorted, scoring.are_maps_in_folders),
        pair, grid, scoring.device, scoring.exec);
  } catch (const InvalidArgument& error) {
    throw named(error.what(), files);
  }
}

}  // namespace

FrameValues score_frames(const Scoring& scoring, const FramePair& pair, const FilePair& files,
    Notes& notes, MeasureSettings& settings) {
  FrameValues values;
  const FramePair frames = frames_on_device(pair, scoring.device, scoring.exec);
  for (std::size_t i = 0; i < scoring.measures.size(); ++i) {
    score(scoring, {.measure = i}, files, frames, notes, values, settings);
  }
  return values;
}

void show_on_page(const Scoring& scoring, const FramePair& frames) {
  if (scoring.images == nullptr) return;
  FramePair pair = frames;
  pair.device = scoring.device;
  scoring.images->add_pair(pair, scoring.measures, scoring.exec);
}

PictureMaps::PictureMaps(const Scoring& scoring, const FilePair& files, const media::Grid* grid)
    : scoring_(scoring), files_(files), grid_(grid), of_page_(requests_of_page(scoring)) {
  for (const MapRequest& map : scoring.maps) maps_.push_back({FrameChoice(map)});
  for (const MapRequest& map : of_page_) on_page_.push_back({FrameChoice(map)});
}

void PictureMaps::keep(const FramePair& frames, const ScoredFrame& scored) {
  for (std::vector<Kept>* all : {&maps_, &on_page_}) {
    for (Kept& kept : *all) {
      const MapRequest& map = kept.choice.map();
      if (all == &on_page_ && !score_in(scored, map)) continue;
      const auto score = [&] {
        const std::optional<double> known = score_in(scored, map);
        if (known) return *known;
        return map.measure.value(
            frames_on_device(frames, scoring_.device, scoring_.exec), scoring_.exec);
      };
      require_code_values(map.measure, frames);
      if (!kept.choice.takes(scored.number, score)) continue;
      kept.frames = frames;
      kept.number = scored.number;
    }
  }
}

void PictureMaps::write() const {
  for (const Kept& kept : maps_) {
    kept.choice.require_found(display_name(files_.distorted));
    write_map_of(scoring_, kept.choice.map(), kept.frames, files_, grid_);
  }
}

void PictureMaps::show_worst() const {
  for (const Kept& kept : on_page_) {
    if (!kept.choice.is_comparable()) continue;  // equal frames have no worst one
    const Measure& measure = kept.choice.map().measure;
    const auto& pictures = *kept.frames.as_read.pictures;
    FramePair frames = kept.frames;
    frames.device = scoring_.device;
    scoring_.images->add_worst({.name = measure.name,
                                   .number = kept.number,
                                   .value = kept.choice.score(),
                                   .reference = pictures[0].image,
                                   .distorted = pictures[1].image,
                                   .measure = &measure,
                                   .frames = frames},
        on_page_.size(), scoring_.exec);
  }
}

VideoScorer::VideoScorer(
    const Scoring& scoring, const VideoPair& videos, const FilePair& files, ClipGroup& clips)
    : scoring_(scoring),
      videos_(videos),
      files_(files),
      planes_(videos.format()),
      clips_(clips),
      clip_(clip_of(scoring, videos, files)),
      of_page_(requests_of_page(scoring)) {
  if (!clip_.is_empty()) {
    videos.require_same_depth();
    videos.require_same_range();
  }
  for (std::size_t i = 0; i < scoring.measures.size(); ++i) {
    if (scoring.measures[i].clip) continue;
    const VideoPlanes takes = scoring.measures[i].video_planes;
    const bool is_of_each = takes == VideoPlanes::all;
    const int count = is_of_each ? videos.format().pixels.color_planes : 1;
    for (int plane = 0; plane < count; ++plane)
      keys_.push_back({i, is_of_each ? plane : kWholeFrame});
    if (takes == VideoPlanes::frame) continue;
    videos.require_same_depth();
    videos.require_same_range();
    planes_taken_ = std::max(planes_taken_, count);
  }
  for (const MapRequest& map : scoring.maps) maps_.push_back({FrameChoice(map)});
  for (const MapRequest& map : of_page_) on_page_.push_back({FrameChoice(map)});
}

FramePair VideoScorer::plane(const media::VideoFrame& x, const media::VideoFrame& y, int plane) {
  return frames_on_device(
      planes_.plane(x, y, plane, scoring_.exec), scoring_.device, scoring_.exec);
}

FramePair VideoScorer::whole_frame(const media::VideoFrame& x, const media::VideoFrame& y) const {
  FramePair pair;
  pair.device = scoring_.device;
  pair.as_read.video = std::make_shared<const std::array<VideoFrameAsRead, 2>>(
      std::array{VideoFrameAsRead{&x, &videos_.format(), videos_.reference_name()},
          VideoFrameAsRead{&y, &videos_.distorted_format(), videos_.distorted_name()}});
  return pair;
}

void VideoScorer::score_frame(Notes& notes, MeasureSettings& settings) {
  const std::int64_t place = videos_.frame() - scoring_.inputs.selection.first;
  const bool is_shown = place % scoring_.shown_every == 0;
  if (is_shown && overlaps()) {
    start_frame();
  } else if (is_shown) {
    ScoredFrame frame{videos_.frame(), {}};
    const media::VideoFrame &x = videos_.reference(), &y = videos_.distorted();
    std::array<FramePair, 3> planes;
    for (int i = 0; i < planes_taken_; ++i) planes[static_cast<std::size_t>(i)] = plane(x, y, i);
    const FramePair whole = whole_frame(x, y);
    std::erase_if(keys_, [&](const ScoreKey& key) {
      const bool is_whole = scoring_.measures[key.measure].video_planes == VideoPlanes::frame;
      const FramePair& frames =
          is_whole ? whole : planes[static_cast<std::size_t>(std::max(key.plane, 0))];
      return !score(scoring_, key, files_, frames, notes, frame.values, settings);
    });
    keep_for_maps(frame);
    waiting_.push_back(std::move(frame));
    has_scored_ = true;
  }
  if (clip_.is_empty()) return;
  try {
    clip_.add_to(clips_, videos_, is_shown);
  } catch (const InvalidArgument& error) {
    throw named(error.what(), files_);
  }
  for (std::size_t i = 0; i < scoring_.measures.size(); ++i) {
    const Measure& measure = scoring_.measures[i];
    if (measure.clip && !settings.contains(i)) settings[i] = measure.settings(std::nullopt);
  }
}

bool VideoScorer::overlaps() const {
  return scoring_.device.kind == DeviceKind::vulkan && scoring_.threads > 1 && has_scored_ &&
         clip_.is_empty() && maps_.empty() && on_page_.empty();
}

void VideoScorer::start_frame() {
  constexpr std::size_t kMostInFlight = 3;  // read and converted; copied over; computed
  if (in_flight_.size() == kMostInFlight) finish_oldest();
  if (spare_.empty()) spare_.push_back(std::make_unique<Held>(videos_.format()));
  InFlight frame{.number = videos_.frame(), .held = std::move(spare_.back())};
  spare_.pop_back();
  frame.held->reference = videos_.reference();
  frame.held->distorted = videos_.distorted();
  frame.values =
      std::async(std::launch::async, [this, held = frame.held.get()] { return values_of(*held); });
  in_flight_.push_back(std::move(frame));
}

void VideoScorer::finish_oldest() {
  InFlight oldest = std::move(in_flight_.front());
  in_flight_.pop_front();
  waiting_.push_back({oldest.number, oldest.values.get()});
  spare_.push_back(std::move(oldest.held));
}

// The values that score_frame() has computed of the first frame.
FrameValues VideoScorer::values_of(Held& held) const {
  FrameValues values;
  std::array<FramePair, 3> planes;
  for (int i = 0; i < planes_taken_; ++i) {
    planes[static_cast<std::size_t>(i)] =
        frames_on_device(held.planes.plane(held.reference, held.distorted, i, scoring_.exec),
            scoring_.device, scoring_.exec);
  }
  const FramePair whole = whole_frame(held.reference, held.distorted);
  for (ScoreKey key : keys_) {
    const Measure& measure = scoring_.measures[key.measure];
    const bool is_whole = measure.video_planes == VideoPlanes::frame;
    const FramePair& frames =
        is_whole ? whole : planes[static_cast<std::size_t>(std::max(key.plane, 0))];
    require_code_values(measure, frames);
    try {
      add_values(measure, key, frames, scoring_.exec, values);
    } catch (const InvalidArgument& error) {
      throw named(error.what(), files_);
    }
  }
  return values;
}

void VideoScorer::finish() {
  while (!in_flight_.empty()) finish_oldest();
  if (!clip_.is_empty()) clip_.finish();
}

std::optional<ScoredFrame> VideoScorer::pop() {
  if (waiting_.empty()) return std::nullopt;
  std::optional<FrameValues> of_clip;
  if (!clip_.is_empty()) {
    of_clip = clip_.pop();
    if (!of_clip) return std::nullopt;
  }
  ScoredFrame frame = std::move(waiting_.front());
  waiting_.pop_front();
  if (of_clip) frame.values.insert(frame.values.end(), of_clip->begin(), of_clip->end());
  return frame;
}

// The whole frame, or its luma.
FramePair VideoScorer::frames_for(
    const Measure& measure, const media::VideoFrame& x, const media::VideoFrame& y) {
  return measure.video_planes == VideoPlanes::frame ? whole_frame(x, y) : plane(x, y, 0);
}

// The score that chooses the worst frame: that of -m, or computed for the map alone.
double VideoScorer::value_of(const MapRequest& map, const ScoredFrame& frame) {
  const std::optional<double> known = score_in(frame, map);
  if (known) return *known;
  return map.measure.value(
      frames_for(map.measure, videos_.reference(), videos_.distorted()), scoring_.exec);
}

void VideoScorer::keep(Kept& kept, const ScoredFrame& frame) {
  const MapRequest& map = kept.choice.map();
  if (!kept.choice.takes(frame.number, [&] { return value_of(map, frame); })) return;
  kept.reference = videos_.reference();
  kept.distorted = videos_.distorted();
}

void VideoScorer::keep_for_maps(const ScoredFrame& frame) {
  for (Kept& kept : maps_) keep(kept, frame);
  for (Kept& kept : on_page_) {
    if (score_in(frame, kept.choice.map())) keep(kept, frame);
  }
}

void VideoScorer::write_maps() {
  for (const Kept& kept : maps_) {
    kept.choice.require_found(display_name(files_.distorted));
    const MapRequest& map = kept.choice.map();
    write_map_of(
        scoring_, map, frames_for(map.measure, kept.reference, kept.distorted), files_, nullptr);
  }
}

void VideoScorer::show_worst() {
  for (const Kept& kept : on_page_) {
    if (!kept.choice.is_comparable()) continue;  // equal frames have no worst one
    const Measure& measure = kept.choice.map().measure;
    const bool is_plane = measure.video_planes == VideoPlanes::all;
    scoring_.images->add_worst(
        {.name = measure.name + (is_plane ? "-y" : ""),
            .number = kept.reference.number,
            .value = kept.choice.score(),
            .reference = shown_frame(kept.reference, videos_.format(), scoring_.exec),
            .distorted = shown_frame(kept.distorted, videos_.distorted_format(), scoring_.exec),
            .measure = &measure,
            .frames = frames_for(measure, kept.reference, kept.distorted)},
        on_page_.size(), scoring_.exec);
  }
}

}  // namespace similis::cli
