// SPDX-License-Identifier: Apache-2.0
#include "src/cli/encodes/ladder_scoring.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "src/cli/compare/frame_scoring.h"
#include "src/cli/compare/pair_scoring.h"
#include "src/cli/encodes/encoded_size.h"
#include "src/cli/terminal/progress.h"

namespace similis::cli {
namespace {

// A video or a clip of pictures among those of one reference that are walked in step.
struct Walked {
  std::size_t index;  // in the encodes
  std::unique_ptr<VideoPair> videos;
  std::unique_ptr<VideoScorer> scorer;
  std::unique_ptr<AnimationPair> clips;  // in their place
  std::optional<PictureMaps> maps;
  bool has_more = true;

  void cancel() const { videos ? videos->cancel() : clips->cancel(); }
  std::optional<std::int64_t> expected_pairs() const {
    return videos ? videos->expected_pairs() : clips->expected_pairs();
  }
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

  // Opens each, and scores at once what does not move.
  void open(OpenedReference& reference) {
    Progress progress("files", static_cast<std::int64_t>(all_.size()));
    for (std::size_t i = 0; i < all_.size() && !is_interrupted(scoring_); ++i) {
      attempt(i, [&] { open(i, reference.pair_with(all_[i].pair.files.distorted)); });
      progress.step();
    }
  }

  void walk() {
    if (walked_.empty()) return;
    const Interruption::Keep keep(scoring_.interruption, [this] {
      for (const Walked& walked : walked_) walked.cancel();
    });
    Progress progress("frames", walked_.front().expected_pairs());
    bool has_more = true;
    while (has_more && !is_interrupted(scoring_)) {
      has_more = false;
      for (Walked& walked : walked_) {
        step(walked);
        has_more = has_more || walked.has_more;
      }
      clips_.run(scoring_.exec);
      for (Walked& walked : walked_) {
        if (walked.scorer) add_known_frames(scoring_, *walked.scorer, all_[walked.index]);
      }
      progress.step();
    }
    progress.clear();
    for (Walked& walked : walked_) {
      if (walked.scorer) add_last_frames(scoring_, *walked.scorer, all_[walked.index]);
      if (all_[walked.index].pair.error.empty()) attempt(walked.index, [&] { end(walked); });
    }
  }

  void lay_out_in(Report& report) {
    std::erase_if(all_, [](const PairScores& scores) { return scores.frames.empty(); });
    for (PairScores& scores : all_) {
      scores.pair.size = encoded_size(scores.pair, scoring_.inputs.raw.has_value());
    }
    lay_out(scoring_.measures, std::move(all_), report);
  }

 private:
  void open(std::size_t i, MediaPair media) {
    if (auto* clips = std::get_if<std::unique_ptr<AnimationPair>>(&media)) {
      describe_clips(scoring_, **clips, notes_, all_[i]);
      walked_.push_back({.index = i, .clips = std::move(*clips)});
      walked_.back().maps.emplace(scoring_, all_[i].pair.files);
      return;
    }
    auto* videos = std::get_if<std::unique_ptr<VideoPair>>(&media);
    if (videos == nullptr) return score_media(scoring_, media, false, notes_, all_[i]);
    describe_videos(scoring_, **videos, notes_, all_[i]);
    auto scorer = std::make_unique<VideoScorer>(scoring_, **videos, all_[i].pair.files, clips_);
    walked_.push_back({.index = i, .videos = std::move(*videos), .scorer = std::move(scorer)});
  }
  void step(Walked& walked) {
    if (!walked.has_more || is_interrupted(scoring_)) return;
    walked.has_more = false;  // unless nothing goes wrong
    attempt(walked.index, [&] {
      PairScores& scores = all_[walked.index];
      if (walked.clips) {
        walked.has_more =
            score_next_pictures(scoring_, *walked.clips, *walked.maps, notes_, scores);
        return;
      }
      if (!walked.videos->next() || is_interrupted(scoring_)) return;
      walked.scorer->score_frame(notes_, scores.settings);
      walked.has_more = true;
    });
  }
  void end(Walked& walked) {
    PairScores& scores = all_[walked.index];
    if (!is_interrupted(scoring_)) {
      walked.videos ? walked.videos->read_rest() : walked.clips->read_rest();
    }
    if (is_interrupted(scoring_)) return;  // said once, by score_encodes
    finish_clip(
        scoring_, walked.videos ? walked.videos->counts() : walked.clips->counts(), notes_, scores);
    walked.videos ? walked.scorer->write_maps() : walked.maps->write();
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
