// SPDX-License-Identifier: Apache-2.0
#include "src/cli/inputs/clips/animation_pair.h"

#include <utility>

#include "src/core/require.h"

namespace similis::cli {

AnimationPair::AnimationPair(std::shared_ptr<ReferencePictures> reference, PictureClip distorted,
    const FrameSelection& selection, const PictureRules& rules, bool reads_ahead)
    : selection_(selection),
      rules_(rules),
      reference_(std::move(reference)),
      distorted_(
          std::move(distorted),
          [selection](std::int64_t i) { return selection.has(i - selection.offset); },
          reads_ahead) {
  require(!rules.adaptation.value_or(Adaptation{}).matches_rate,
      "{} and {} are compared picture by picture; --match-rate is for two videos in YUV",
      reference_->name(), distorted_.name());
}

std::optional<std::int64_t> AnimationPair::expected_pairs() const {
  const auto x = reference_->expected_frames(), y = distorted_.expected_frames();
  if (!x || !y) return std::nullopt;
  return selection_.count(*x, *y);
}

std::optional<PicturePair> AnimationPair::next(const Execution& exec) {
  if (selection_.end && selection_.next(number_ + 1) >= *selection_.end) return std::nullopt;
  std::shared_ptr<const media::Image> y;
  if (reference_->go_to(place_ + 1, exec)) {
    y = distorted_.picture(reference_->number() + selection_.offset);
  }
  has_ended_ = y == nullptr;
  if (has_ended_) return std::nullopt;
  ++place_;
  number_ = reference_->number();
  return pair_pictures(
      reference_->picture(), *y, reference_->name(), distorted_.name(), rules_, exec);
}

void AnimationPair::read_rest() {
  if (has_ended_) {
    reference_->read_rest();
    distorted_.read_rest();
  }
  counts_ = {reference_->frames(), distorted_.frames()};
  if (!counts_.reference || !counts_.distorted) counts_ = {};
}

Differences AnimationPair::conversions() const {
  Differences conversions;
  if (const std::string words = reference_->conversion(); !words.empty()) {
    conversions.emplace_back("reference_rgb", words);
  }
  if (!distorted_.conversion().empty()) {
    conversions.emplace_back("distorted_rgb", distorted_.conversion());
  }
  return conversions;
}

void AnimationPair::cancel() {
  reference_->cancel();
  distorted_.cancel();
}

}  // namespace similis::cli
