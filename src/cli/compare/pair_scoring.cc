// SPDX-License-Identifier: Apache-2.0
#include "src/cli/compare/pair_scoring.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <variant>

#include "src/cli/terminal/progress.h"
#include "src/core/counted.h"
#include "src/core/require.h"

namespace similis::cli {
namespace {

// Frame rates that differ by more are noted.
constexpr double kRateTolerance = 1e-3;

const Adaptation& adaptation_of(const Scoring& scoring) {
  static const Adaptation none;
  const auto& asked = scoring.inputs.rules.adaptation;
  return asked ? *asked : none;
}

// Adds a frame to the scores, for those who wait for it too.
void add_frame(const Scoring& scoring, ScoredFrame frame, PairScores& scores) {
  scores.frames.push_back(std::move(frame));
  if (scoring.on_frame) scoring.on_frame(scores);
}

// Says what was done to a pair's inputs, once.
void say_done(const Done& done, Notes& notes, PairScores& scores) {
  if (scores.frames.empty()) {
    for (const Json& entry : done) {
      notes.add(display_name(scores.pair.files.distorted), entry["words"].get<std::string>());
    }
  }
  scores.pair.done = done;
}

// Says how much --nan mask left out, of all frames.
void say_left_out(Notes& notes, PairScores& scores) {
  const ScoredPair& pair = scores.pair;
  if (pair.left_out == 0) return;
  const std::string words =
      fmt::format("left out {} with values that are not finite on one side or both",
          counted(pair.left_out, pair.samples.voxels ? "voxel" : "pixel"));
  notes.add(display_name(pair.files.distorted), words);
  scores.pair.done.push_back(
      {{"side", "both"}, {"step", "nan"}, {"count", pair.left_out}, {"words", words}});
}

// Scores a pair of pictures, or of frames of clips.
void score_pictures(const Scoring& scoring, const PicturePair& pictures, std::int64_t number,
    Notes& notes, PairScores& scores) {
  scores.pair.samples.bit_depth = pictures.bit_depth;
  scores.pair.samples.channels = pictures.channels;
  for (const auto& difference : pictures.differences) {
    Differences& known = scores.pair.differences;
    if (std::find(known.begin(), known.end(), difference) == known.end())
      known.push_back(difference);
  }
  say_done(pictures.done, notes, scores);
  scores.pair.left_out += pictures.frames.left_out;
  const media::Image& image = (*pictures.frames.as_read.pictures)[0].image;
  scores.pair.pixels = image.width * image.height;
  FrameValues values =
      score_frames(scoring, pictures.frames, scores.pair.files, notes, scores.settings);
  for (const auto& [key, sentence] : pictures.differences) {
    if (key == "color" && scores.frames.empty())
      notes.add(display_name(scores.pair.files.distorted), sentence);
  }
  add_frame(scoring, {number, std::move(values)}, scores);
}

void score_picture_pair(
    const Scoring& scoring, const PicturePair& pictures, Notes& notes, PairScores& scores) {
  score_pictures(scoring, pictures, 0, notes, scores);
  say_left_out(notes, scores);
  PictureMaps maps(scoring, scores.pair.files);
  maps.keep(pictures.frames, scores.frames.back());
  maps.write();
  show_on_page(scoring, pictures.frames);
}

void note_counts(
    const FilePair& files, const FrameCounts& counts, std::size_t scored, Notes& notes) {
  if (!counts.reference || *counts.reference == *counts.distorted) return;
  notes.add(display_name(files.distorted),
      fmt::format("has {} but {} has {}; scored {}", counted(*counts.distorted, "frame"),
          display_name(files.reference), *counts.reference, counted(scored, "frame")));
}

std::string rate_text(const media::FrameRate& rate) { return fmt::format("{:.6g}", rate.value()); }

// Takes the rates of two clips; `hint` ends the note where they differ.
void compare_rates(const media::FrameRate& x, const media::FrameRate& y, const char* hint,
    Notes& notes, PairScores& scores) {
  scores.pair.rate = x;
  scores.pair.distorted_rate = y;
  if (!x.is_known() || !y.is_known()) return;
  if (std::abs(y.value() / x.value() - 1) <= kRateTolerance) return;
  scores.pair.differences.emplace_back("frame_rate",
      fmt::format("reference has {} frames per second, distorted {}", rate_text(x), rate_text(y)));
  notes.add(display_name(scores.pair.files.distorted),
      fmt::format("has {} frames per second but {} has {}; frames are compared by their numbers{}",
          rate_text(y), display_name(scores.pair.files.reference), rate_text(x), hint));
}

void score_videos(const Scoring& scoring, VideoPair& videos, bool shows_progress, Notes& notes,
    PairScores& scores) {
  describe_videos(scoring, videos, notes, scores);
  ClipGroup clips(scoring.device);
  VideoScorer scorer(scoring, videos, scores.pair.files, clips);
  const Interruption::Keep keep(scoring.interruption, [&videos] { videos.cancel(); });
  Progress progress("frames", shows_progress ? videos.expected_pairs() : 0);
  try {
    while (videos.next() && !is_interrupted(scoring)) {
      scorer.score_frame(notes, scores.settings);
      clips.run(scoring.exec);
      add_known_frames(scoring, scorer, scores);
      progress.step();
    }
  } catch (const Error&) {
    add_last_frames(scoring, scorer, scores);
    throw;
  }
  add_last_frames(scoring, scorer, scores);
  if (!is_interrupted(scoring)) videos.read_rest();
  require_not_interrupted(scoring);
  finish_clip(scoring, videos.counts(), notes, scores);
  scorer.write_maps();
  scorer.show_worst();
}

void score_clips(const Scoring& scoring, AnimationPair& clips, bool shows_progress, Notes& notes,
    PairScores& scores) {
  describe_clips(scoring, clips, notes, scores);
  const Interruption::Keep keep(scoring.interruption, [&clips] { clips.cancel(); });
  Progress progress("frames", shows_progress ? clips.expected_pairs() : 0);
  PictureMaps maps(scoring, scores.pair.files);
  while (score_next_pictures(scoring, clips, maps, notes, scores)) {
    require_not_interrupted(scoring);
    progress.step();
  }
  require_not_interrupted(scoring);
  clips.read_rest();
  require_not_interrupted(scoring);
  finish_clip(scoring, clips.counts(), notes, scores);
  maps.write();
  maps.show_worst();
}

void score_volumes(const Scoring& scoring, VolumePair& volumes, bool shows_progress, Notes& notes,
    PairScores& scores) {
  const FilePair& files = scores.pair.files;
  const std::string name = display_name(files.distorted);
  require(!scoring.inputs.raw, "{} is a volume; --size and --pix-fmt are for video", name);
  require(adaptation_of(scoring) == Adaptation{},
      "{} is a volume; --resize, --crop, --depth, --range and --match-rate are for pictures and "
      "video",
      name);
  scores.pair.samples.channels = volumes.channels();
  scores.pair.samples.voxels = volumes.grid().size;
  scores.pair.differences = volumes.differences();
  for (const auto& [key, sentence] : volumes.differences()) {
    notes.add(
        display_name(key.starts_with("reference") ? files.reference : files.distorted), sentence);
  }
  const Interruption::Keep keep(scoring.interruption);
  Progress progress("frames", shows_progress ? volumes.expected_pairs() : 0);
  PictureMaps maps(scoring, files, &volumes.grid());
  while (const std::optional<FramePair> frames = volumes.next()) {
    require_not_interrupted(scoring);
    scores.pair.left_out += frames->left_out;
    add_frame(scoring,
        {volumes.frame(), score_frames(scoring, *frames, files, notes, scores.settings)}, scores);
    maps.keep(*frames, scores.frames.back());
    if (scores.frames.size() == 1) show_on_page(scoring, *frames);
    progress.step();
  }
  const FrameCounts counts = volumes.counts();
  const bool is_single = counts.reference == 1 && counts.distorted == 1;
  finish_clip(scoring, is_single ? FrameCounts{} : counts, notes, scores);
  maps.write();
}

}  // namespace

bool is_interrupted(const Scoring& scoring) {
  return scoring.interruption != nullptr && scoring.interruption->signal() != 0;
}

void require_not_interrupted(const Scoring& scoring) {
  if (is_interrupted(scoring)) throw Error(scoring.interruption->words());
}

void record_error(const std::string& error, PairScores& scores, Report& report) {
  print_error(error);
  scores.pair.error = error;
  report.error += (report.error.empty() ? "" : "; ") + error;
}

void describe_videos(
    const Scoring& scoring, const VideoPair& videos, Notes& notes, PairScores& scores) {
  const media::VideoFormat &x = videos.format(), &y = videos.distorted_format();
  require(!scoring.inputs.rate.is_known() || scoring.inputs.raw.has_value(),
      "{} is a video with a rate of its own; --fps is for image sequences, animations and raw "
      "video",
      videos.reference_name());
  scores.pair.samples.bit_depth = x.pixels.bit_depth;
  scores.pair.samples.chroma = chroma_name(x.pixels);
  scores.pair.is_video = true;
  say_done(videos.done(), notes, scores);
  if (y.pixels.bit_depth != x.pixels.bit_depth) {
    scores.pair.differences.emplace_back(
        "bit_depth", fmt::format("reference has {} bits per sample, distorted {}",
                         x.pixels.bit_depth, y.pixels.bit_depth));
  }
  if (adaptation_of(scoring).matches_rate) {  // it is said
    scores.pair.rate = x.rate;
    scores.pair.distorted_rate = y.rate;
    return;
  }
  compare_rates(x.rate, y.rate, ", or by time with --match-rate nearest", notes, scores);
}

void describe_clips(
    const Scoring& scoring, const AnimationPair& clips, Notes& notes, PairScores& scores) {
  const auto rate_of = [&](const media::FrameRate& own) {
    return own.is_known() ? own : scoring.inputs.rate;
  };
  const media::FrameRate x = clips.reference_rate(), y = clips.distorted_rate();
  // A video's rate is that of the pictures beside it, unless --fps says otherwise.
  const media::FrameRate either = x.is_known() ? x : y;
  const auto or_either = [&](const media::FrameRate& rate) {
    return rate.is_known() ? rate : either;
  };
  compare_rates(or_either(rate_of(x)), or_either(rate_of(y)), "", notes, scores);
  const FilePair& files = scores.pair.files;
  for (const auto& [key, sentence] : clips.conversions()) {
    const bool is_reference = key.starts_with("reference");
    scores.pair.differences.emplace_back(key, sentence);
    scores.pair.is_video = scores.pair.is_video || !is_reference;
    notes.add(display_name(is_reference ? files.reference : files.distorted), sentence);
  }
}

void add_known_frames(const Scoring& scoring, VideoScorer& scorer, PairScores& scores) {
  while (std::optional<ScoredFrame> frame = scorer.pop()) {
    add_frame(scoring, std::move(*frame), scores);
  }
}

void add_last_frames(const Scoring& scoring, VideoScorer& scorer, PairScores& scores) {
  scorer.finish();
  add_known_frames(scoring, scorer, scores);
}

bool score_next_pictures(const Scoring& scoring, AnimationPair& clips, PictureMaps& maps,
    Notes& notes, PairScores& scores) {
  const std::optional<PicturePair> pictures = clips.next(scoring.exec);
  if (!pictures) return false;
  score_pictures(scoring, *pictures, clips.frame(), notes, scores);
  maps.keep(pictures->frames, scores.frames.back());
  return true;
}

void finish_clip(
    const Scoring& scoring, const FrameCounts& counts, Notes& notes, PairScores& scores) {
  const FilePair& files = scores.pair.files;
  const FrameSelection& selection = scoring.inputs.selection;
  scores.pair.counts = counts;
  say_left_out(notes, scores);
  const std::string reference = display_name(files.reference);
  const std::string distorted = display_name(files.distorted);
  if (scores.frames.empty() && counts.reference) {
    require(selection.first == 0 || selection.first < *counts.reference,
        "{} has {}; --frames begins at frame {}", reference, counted(*counts.reference, "frame"),
        selection.first);
    throw InvalidArgument(fmt::format("no frame to compare: {} has {} and {} has {}", reference,
        counted(*counts.reference, "frame"), distorted, counted(*counts.distorted, "frame")));
  }
  require(!scores.frames.empty(), "no frame to compare in {} and {}", reference, distorted);
  if (!adaptation_of(scoring).matches_rate) {
    note_counts(files, counts, scores.frames.size(), notes);
  }
  if (!selection.end || !counts.reference || *selection.end <= *counts.reference) return;
  notes.add(reference,
      fmt::format("has {} but --frames ends at {}; scored {}", counted(*counts.reference, "frame"),
          *selection.end, counted(scores.frames.size(), "frame")));
}

void score_media(const Scoring& scoring, const MediaPair& media, bool is_single, Notes& notes,
    PairScores& scores) {
  if (const auto* videos = std::get_if<std::unique_ptr<VideoPair>>(&media)) {
    return score_videos(scoring, **videos, is_single, notes, scores);
  }
  if (const auto* clips = std::get_if<std::unique_ptr<AnimationPair>>(&media)) {
    return score_clips(scoring, **clips, is_single, notes, scores);
  }
  if (const auto* volumes = std::get_if<std::unique_ptr<VolumePair>>(&media)) {
    return score_volumes(scoring, **volumes, is_single, notes, scores);
  }
  require(!is_single || !scoring.inputs.are_for_video(),
      "{} is a picture; --frames, --every, --offset, --fps, --size and --pix-fmt are for video",
      display_name(scores.pair.files.distorted));
  const Adaptation adaptation = adaptation_of(scoring);
  require(!is_single || (!adaptation.matches_depth && !adaptation.matches_rate &&
                            adaptation.range == RangeRule::must_agree),
      "{} is a picture; --depth, --range and --match-rate are for video",
      display_name(scores.pair.files.distorted));
  score_picture_pair(scoring, std::get<PicturePair>(media), notes, scores);
}

}  // namespace similis::cli
