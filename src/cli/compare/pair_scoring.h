// SPDX-License-Identifier: Apache-2.0
// Scores one pair that was opened.
#pragma once

#include <string>

#include "src/cli/compare/frame_scoring.h"
#include "src/cli/compare/scoring.h"

namespace similis::cli {

/// True once a signal came.
bool is_interrupted(const Scoring& scoring);
void require_not_interrupted(const Scoring& scoring);

/// Prints the error, and puts it into the pair and the report.
void record_error(const std::string& error, PairScores& scores, Report& report);

/// Takes the facts about two videos that are known before their first frame.
void describe_videos(
    const Scoring& scoring, const VideoPair& videos, Notes& notes, PairScores& scores);
/// The same of two clips of pictures.
void describe_clips(
    const Scoring& scoring, const AnimationPair& clips, Notes& notes, PairScores& scores);

/// Adds the frames whose scores are all known.
void add_known_frames(const Scoring& scoring, VideoScorer& scorer, PairScores& scores);
/// Adds the frames that wait for one more, after the last.
void add_last_frames(const Scoring& scoring, VideoScorer& scorer, PairScores& scores);

/// Scores the next pictures of two clips, whose maps go to `maps`; false after the last.
bool score_next_pictures(const Scoring& scoring, AnimationPair& clips, PictureMaps& maps,
    Notes& notes, PairScores& scores);

/// Notes or refuses the numbers of frames, after the last frame of videos or clips.
void finish_clip(
    const Scoring& scoring, const FrameCounts& counts, Notes& notes, PairScores& scores);

/// Scores a pair. Adds to `scores` frame by frame, so that frames scored before an error are kept.
/// `is_single`: it is the only pair of the run.
void score_media(const Scoring& scoring, const MediaPair& media, bool is_single, Notes& notes,
    PairScores& scores);

}  // namespace similis::cli
