// SPDX-License-Identifier: Apache-2.0
// Runs measures on one pair of frames.
#pragma once

#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/cli/compare/clip_scoring.h"
#include "src/cli/compare/scoring.h"
#include "src/cli/inputs/clips/video_planes.h"
#include "src/cli/maps/frame_choice.h"
#include "src/media/picture/image.h"

namespace similis::cli {

/// Runs all measures on one pair of frames of pictures or volumes. `settings` gets those of
/// measures that are new there. Throws InvalidArgument, naming a file, if one cannot run; if the
/// measures are the default ones, it is skipped with a note instead.
FrameValues score_frames(const Scoring& scoring, const FramePair& pair, const FilePair& files,
    Notes& notes, MeasureSettings& settings);

/// The maps of pictures or volumes, or of clips of them: keeps the frames that were asked for, and
/// of clips each measure's worst for the page of --report.
class PictureMaps {
 public:
  /// `grid` is that of volumes.
  PictureMaps(const Scoring& scoring, const FilePair& files, const media::Grid* grid = nullptr);

  void keep(const FramePair& frames, const ScoredFrame& scored);
  /// Throws InvalidArgument if a frame that was asked for was not scored.
  void write() const;
  void show_worst() const;

 private:
  struct Kept {
    FrameChoice choice;
    FramePair frames = {};
    std::int64_t number = 0;
  };
  const Scoring& scoring_;
  FilePair files_;
  const media::Grid* grid_;
  std::vector<MapRequest> of_page_;
  std::vector<Kept> maps_, on_page_;
};

/// Puts a pair of frames of pictures or volumes on the page of --report, if one is wanted.
void show_on_page(const Scoring& scoring, const FramePair& frames);

/// Scores the frames of two videos. A metric for which the planes are too small is tried in the
/// first frame only. Maps are written at the end, and each measure's worst frame is then put on the
/// page of --report.
class VideoScorer {
 public:
  /// Throws InvalidArgument, naming a video, if a measure needs them larger or more alike. Videos
  /// that share a reference share `clips`.
  VideoScorer(
      const Scoring& scoring, const VideoPair& videos, const FilePair& files, ClipGroup& clips);

  /// Scores the pair's current frames; measures that look at several frames run in the next
  /// ClipGroup::run(). Through Vulkan a few frames are under way at a time, so that one is copied
  /// to the device while another is computed there.
  void score_frame(Notes& notes, MeasureSettings& settings);
  /// Says that no frame comes any more.
  void finish();
  /// The next frame whose scores are all known.
  std::optional<ScoredFrame> pop();

  /// Writes the maps of the frames that were asked for. Throws InvalidArgument if one was not
  /// scored.
  void write_maps();
  /// Puts the worst frames so far on the page of --report, if one is wanted.
  void show_worst();

 private:
  struct Kept {
    FrameChoice choice;
    media::VideoFrame reference = {}, distorted = {};
  };

  // A frame that is scored on a thread of its own, with copies of what the next frame overwrites.
  struct Held {
    explicit Held(const media::VideoFormat& format) : planes(format) {}
    media::VideoFrame reference, distorted;
    VideoPlanePairs planes;
  };
  struct InFlight {
    std::int64_t number;
    std::unique_ptr<Held> held;
    std::future<FrameValues> values;
  };

  bool overlaps() const;
  void start_frame();
  void finish_oldest();
  FrameValues values_of(Held& held) const;
  FramePair plane(const media::VideoFrame& x, const media::VideoFrame& y, int plane);
  FramePair whole_frame(const media::VideoFrame& x, const media::VideoFrame& y) const;
  FramePair frames_for(
      const Measure& measure, const media::VideoFrame& x, const media::VideoFrame& y);
  void keep_for_maps(const ScoredFrame& frame);
  void keep(Kept& kept, const ScoredFrame& frame);
  double value_of(const MapRequest& map, const ScoredFrame& frame);

  const Scoring& scoring_;
  const VideoPair& videos_;
  FilePair files_;
  VideoPlanePairs planes_;
  std::vector<ScoreKey> keys_;
  ClipGroup& clips_;
  ClipScorer clip_;
  std::deque<ScoredFrame> waiting_;  // without the numbers of clip_
  std::deque<InFlight> in_flight_;
  std::vector<std::unique_ptr<Held>> spare_;
  bool has_scored_ = false;          // a frame: it is known which measures run
  std::vector<MapRequest> of_page_;  // one for each measure, without a path
  std::vector<Kept> maps_, on_page_;
  int planes_taken_ = 0;
};

}  // namespace similis::cli
