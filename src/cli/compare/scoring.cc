// SPDX-License-Identifier: Apache-2.0
#include "src/cli/compare/scoring.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <memory>
#include <utility>
#include <variant>

#include "src/cli/compare/frame_scoring.h"
#include "src/cli/encodes/encoded_size.h"
#include "src/cli/terminal/progress.h"
#include "src/core/counted.h"
#include "src/core/require.h"

namespace similis::cli {
namespace {

// Frame rates that differ by more are noted.
constexpr double kRateTolerance = 1e-3;

bool is_interrupted(const Scoring& scoring) {
  return scoring.interruption != nullptr && scoring.interruption->signal() != 0;
}

void require_not_interrupted(const Scoring& scoring) {
  if (is_interrupted(scoring)) throw Error(scoring.interruption->words());
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

// Scores a pair of pictures, or of frames of animations.
void score_pictures(const Scoring& scoring, const PicturePair& pictures, std::int64_t number,
    Notes& notes, PairScores& scores) {
  scores.pair.samples.bit_depth = pictures.bit_depth;
  scores.pair.samples.channels = pictures.channels;
  scores.pair.differences = pictures.differences;
  say_done(pictures.done, notes, scores);
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
  for (const MapRequest& map : scoring.maps) {
    write_map(scoring, map, pictures.frames, scores.pair.files);
  }
  show_on_page(scoring, pictures.frames);
}

void note_counts(
    const FilePair& files, const FrameCounts& counts, std::size_t scored, Notes& notes) {
  if (!counts.reference || *counts.reference == *counts.distorted) return;
  notes.add(display_name(files.distorted),
      fmt::format("has {} but {} has {}; scored {}", counted(*counts.distorted, "frame"),
          display_name(files.reference), *counts.reference, counted(scored, "frame")));
}

// Notes or refuses the numbers of frames, after the last frame of videos or animations.
void finish(const Scoring& scoring, const FrameCounts& counts, Notes& notes, PairScores& scores) {
  const FilePair& files = scores.pair.files;
  const FrameSelection& selection = scoring.inputs.selection;
  scores.pair.counts = counts;
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
  const bool matches_rate = scoring.inputs.adaptation.value_or(Adaptation{}).matches_rate;
  if (!matches_rate) note_counts(files, counts, scores.frames.size(), notes);
  if (!selection.end || !counts.reference || *selection.end <= *counts.reference) return;
  notes.add(reference,
      fmt::format("has {} but --frames ends at {}; scored {}", counted(*counts.reference, "frame"),
          *selection.end, counted(scores.frames.size(), "frame")));
}

std::string rate_text(const media::FrameRate& rate) { return fmt::format("{:.6g}", rate.value()); }

// The facts about two videos that are known before their first frame.
void describe_videos(
    const Scoring& scoring, const VideoPair& videos, Notes& notes, PairScores& scores) {
  const media::VideoFormat &x = videos.format(), &y = videos.distorted_format();
  require(!scoring.inputs.rate.is_known() || scoring.inputs.raw.has_value(),
      "{} is a video with a rate of its own; --fps is for image sequences, animations and raw "
      "video",
      videos.reference_name());
  scores.pair.samples.bit_depth = x.pixels.bit_depth;
  scores.pair.samples.chroma = chroma_name(x.pixels);
  scores.pair.rate = x.rate;
  scores.pair.distorted_rate = y.rate;
  say_done(videos.done(), notes, scores);
  if (y.pixels.bit_depth != x.pixels.bit_depth) {
    scores.pair.differences.emplace_back(
        "bit_depth", fmt::format("reference has {} bits per sample, distorted {}",
                         x.pixels.bit_depth, y.pixels.bit_depth));
  }
  if (!x.rate.is_known() || !y.rate.is_known()) return;
  if (scoring.inputs.adaptation.value_or(Adaptation{}).matches_rate) return;  // it is said
  if (std::abs(y.rate.value() / x.rate.value() - 1) <= kRateTolerance) return;
  scores.pair.differences.emplace_back(
      "frame_rate", fmt::format("reference has {} frames per second, distorted {}",
                        rate_text(x.rate), rate_text(y.rate)));
  notes.add(display_name(scores.pair.files.distorted),
      fmt::format(
          "has {} frames per second but {} has {}; frames are compared by their numbers, or by "
          "time with --match-rate nearest",
          rate_text(y.rate), display_name(scores.pair.files.reference), rate_text(x.rate)));
}

// Adds the frames whose scores are all known.
void add_known_frames(const Scoring& scoring, VideoScorer& scorer, PairScores& scores) {
  while (std::optional<ScoredFrame> frame = scorer.pop()) {
    add_frame(scoring, std::move(*frame), scores);
  }
}

// Adds the frames that wait for one more, after the last.
void add_last_frames(const Scoring& scoring, VideoScorer& scorer, PairScores& scores) {
  scorer.finish();
  add_known_frames(scoring, scorer, scores);
}

// These add to `scores` frame by frame, so that frames scored before an error are kept.
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
  finish(scoring, videos.counts(), notes, scores);
  scorer.write_maps();
  scorer.show_worst();
}

void score_animations(const Scoring& scoring, AnimationPair& animations, bool shows_progress,
    Notes& notes, PairScores& scores) {
  require(scoring.maps.empty(), "{} is a clip of pictures; --map takes pictures, videos or volumes",
      display_name(scores.pair.files.distorted));
  scores.pair.rate = scores.pair.distorted_rate = scoring.inputs.rate;
  const Interruption::Keep keep(scoring.interruption);
  Progress progress("frames", shows_progress ? animations.expected_pairs() : 0);
  while (const auto pictures = animations.next(scoring.exec)) {
    require_not_interrupted(scoring);
    score_pictures(scoring, *pictures, animations.frame(), notes, scores);
    progress.step();
  }
  finish(scoring, animations.counts(), notes, scores);
}

void score_volumes(const Scoring& scoring, VolumePair& volumes, bool shows_progress, Notes& notes,
    PairScores& scores) {
  const FilePair& files = scores.pair.files;
  const std::string name = display_name(files.distorted);
  require(!scoring.inputs.raw, "{} is a volume; --size and --pix-fmt are for video", name);
  require(scoring.inputs.adaptation.value_or(Adaptation{}) == Adaptation{},
      "{} is a volume; --resize, --crop, --depth, --range and --match-rate are for pictures and "
      "video",
      name);
  require(scoring.maps.empty() || volumes.expected_pairs() == 1,
      "{} has several frames; --map takes pictures, videos, or volumes of one frame", name);
  scores.pair.samples.channels = volumes.channels();
  scores.pair.samples.voxels = volumes.grid().size;
  scores.pair.differences = volumes.differences();
  for (const auto& [key, sentence] : volumes.differences()) {
    notes.add(
        display_name(key.starts_with("reference") ? files.reference : files.distorted), sentence);
  }
  const Interruption::Keep keep(scoring.interruption);
  Progress progress("frames", shows_progress ? volumes.expected_pairs() : 0);
  while (const std::optional<FramePair> frames = volumes.next()) {
    require_not_interrupted(scoring);
    add_frame(scoring,
        {volumes.frame(), score_frames(scoring, *frames, files, notes, scores.settings)}, scores);
    for (const MapRequest& map : scoring.maps)
      write_map(scoring, map, *frames, files, &volumes.grid());
    if (scores.frames.size() == 1) show_on_page(scoring, *frames);
    progress.step();
  }
  const FrameCounts counts = volumes.counts();
  const bool is_single = counts.reference == 1 && counts.distorted == 1;
  finish(scoring, is_single ? FrameCounts{} : counts, notes, scores);
}

// Scores a pair that was opened.
void score_media(const Scoring& scoring, const MediaPair& media, bool is_single, Notes& notes,
    PairScores& scores) {
  if (const auto* videos = std::get_if<std::unique_ptr<VideoPair>>(&media)) {
    return score_videos(scoring, **videos, is_single, notes, scores);
  }
  if (const auto* animations = std::get_if<std::unique_ptr<AnimationPair>>(&media)) {
    return score_animations(scoring, **animations, is_single, notes, scores);
  }
  if (const auto* volumes = std::get_if<std::unique_ptr<VolumePair>>(&media)) {
    return score_volumes(scoring, **volumes, is_single, notes, scores);
  }
  require(!is_single || !scoring.inputs.are_for_video(),
      "{} is a picture; --frames, --every, --offset, --fps, --size and --pix-fmt are for video",
      display_name(scores.pair.files.distorted));
  score_picture_pair(scoring, std::get<PicturePair>(media), notes, scores);
}

void record_error(const std::string& error, PairScores& scores, Report& report) {
  print_error(error);
  scores.pair.error = error;
  report.error += (report.error.empty() ? "" : "; ") + error;
}

// A video among those of one reference that are walked in step.
struct Walked {
  std::unique_ptr<VideoPair> videos;
  std::unique_ptr<VideoScorer> scorer;
  std::size_t index;  // in the encodes
  bool has_more = true;
};

class EncodesScorer {
 public:
  EncodesScorer(const Scoring& scoring, const std::string& reference,
      const std::vector<std::string>& encodes, Notes& notes, Report& report)
      : scoring_(scoring), notes_(notes), report_(report), all_(encodes.size()) {
    for (std::size_t i = 0; i < encodes.size(); ++i) {
      all_[i].pair.files = {reference, encodes[i]};
    }
  }

  // Opens each, and scores at once what is no video.
  void open(OpenedReference& reference) {
    Progress progress("files", static_cast<std::int64_t>(all_.size()));
    for (std::size_t i = 0; i < all_.size() && !is_interrupted(scoring_); ++i) {
      attempt(i, [&] {
        MediaPair media = reference.pair_with(all_[i].pair.files.distorted);
        auto* videos = std::get_if<std::unique_ptr<VideoPair>>(&media);
        if (videos == nullptr) return score_media(scoring_, media, false, notes_, all_[i]);
        describe_videos(scoring_, **videos, notes_, all_[i]);
        auto scorer = std::make_unique<VideoScorer>(scoring_, **videos, all_[i].pair.files, clips_);
        walked_.push_back({std::move(*videos), std::move(scorer), i});
      });
      progress.step();
    }
  }

  void walk() {
    if (walked_.empty()) return;
    const Interruption::Keep keep(scoring_.interruption, [this] {
      for (const Walked& walked : walked_) walked.videos->cancel();
    });
    Progress progress("frames", walked_.front().videos->expected_pairs());
    bool has_more = true;
    while (has_more && !is_interrupted(scoring_)) {
      has_more = false;
      for (Walked& walked : walked_) {
        step(walked);
        has_more = has_more || walked.has_more;
      }
      clips_.run(scoring_.exec);
      for (Walked& walked : walked_) {
        add_known_frames(scoring_, *walked.scorer, all_[walked.index]);
      }
      progress.step();
    }
    progress.clear();
    for (Walked& walked : walked_) {
      add_last_frames(scoring_, *walked.scorer, all_[walked.index]);
      if (all_[walked.index].pair.error.empty()) attempt(walked.index, [&] { end(walked); });
    }
  }

  void lay_out_in(Report& report) {
    std::erase_if(all_, [](const PairScores& scores) { return scores.frames.empty(); });
    for (PairScores& scores : all_) {
      const bool is_picture = !scores.pair.samples.chroma && !scores.pair.samples.voxels;
      scores.pair.size = encoded_size(scores.pair, is_picture, scoring_.inputs.raw.has_value());
    }
    lay_out(scoring_.measures, std::move(all_), report);
  }

 private:
  void step(Walked& walked) {
    if (!walked.has_more || is_interrupted(scoring_)) return;
    walked.has_more = false;  // unless nothing goes wrong
    attempt(walked.index, [&] {
      PairScores& scores = all_[walked.index];
      if (!walked.videos->next() || is_interrupted(scoring_)) return;
      walked.scorer->score_frame(notes_, scores.settings);
      walked.has_more = true;
    });
  }
  void end(Walked& walked) {
    if (!is_interrupted(scoring_)) walked.videos->read_rest();
    if (is_interrupted(scoring_)) return;  // said once, by score_encodes
    finish(scoring_, walked.videos->counts(), notes_, all_[walked.index]);
    walked.scorer->write_maps();
  }
  template <class Action> void attempt(std::size_t i, const Action& action) {
    try {
      action();
    } catch (const Error& error) {
      record_error(error.what(), all_[i], report_);
    }
  }

  const Scoring& scoring_;
  Notes& notes_;
  Report& report_;
  std::vector<PairScores> all_;
  ClipGroup clips_{scoring_.device};
  std::vector<Walked> walked_;
};

}  // namespace

void score_pairs(
    const Scoring& scoring, const std::vector<FilePair>& files, Notes& notes, Report& report) {
  const auto policy = scoring.threads > 1 ? std::launch::async : std::launch::deferred;
  const auto open = [&](std::size_t i) {
    return std::async(policy, [&scoring, &files, i] {
      return open_media_pair(files[i], scoring.inputs, scoring.threads, scoring.exec);
    });
  };
  std::vector<PairScores> all;
  const bool is_single = files.size() == 1;
  std::optional<Interruption::Keep> keep;
  if (!is_single) keep.emplace(scoring.interruption);
  Progress progress("pairs", static_cast<std::int64_t>(files.size()));
  std::future<MediaPair> next = files.empty() ? std::future<MediaPair>() : open(0);
  for (std::size_t i = 0; i < files.size(); ++i) {
    PairScores scores{.pair = {.files = files[i]}};
    try {
      require_not_interrupted(scoring);
      std::future<MediaPair> current = std::move(next);
      if (i + 1 < files.size()) next = open(i + 1);
      score_media(scoring, current.get(), is_single, notes, scores);
    } catch (const Error& error) {
      progress.clear();
      record_error(error.what(), scores, report);
    }
    if (!scores.frames.empty()) all.push_back(std::move(scores));
    if (is_interrupted(scoring)) break;
    progress.step();
  }
  progress.clear();
  lay_out(scoring.measures, std::move(all), report);
}

Report score_one_pair(const Scoring& scoring, const FilePair& files, Notes& notes) {
  Report report;
  report.compared = Compared::directories;
  PairScores scores{.pair = {.files = files}};
  try {
    const MediaPair media = open_media_pair(files, scoring.inputs, scoring.threads, scoring.exec);
    score_media(scoring, media, false, notes, scores);
    const bool has_scores = std::any_of(scores.frames.begin(), scores.frames.end(),
        [](const ScoredFrame& frame) { return !frame.values.empty(); });
    require(has_scores, "none of the default metrics can score {}; choose metrics with -m",
        files.distorted);
  } catch (const Error& error) {
    report.error = error.what();
    return report;
  }
  std::vector<PairScores> all;
  all.push_back(std::move(scores));
  lay_out(scoring.measures, std::move(all), report);
  return report;
}

void score_encodes(const Scoring& scoring, const std::string& reference,
    const std::vector<std::string>& encodes, Notes& notes, Report& report) {
  EncodesScorer scorer(scoring, reference, encodes, notes, report);
  OpenedReference opened(reference, scoring.inputs, scoring.threads, scoring.exec);
  scorer.open(opened);
  scorer.walk();
  if (is_interrupted(scoring)) {
    const std::string words = scoring.interruption->words();
    print_error(words);
    report.error += (report.error.empty() ? "" : "; ") + words;
  }
  scorer.lay_out_in(report);
}

}  // namespace similis::cli
