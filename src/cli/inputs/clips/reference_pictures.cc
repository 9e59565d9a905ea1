// SPDX-License-Identifier: Apache-2.0
#include "src/cli/inputs/clips/reference_pictures.h"

#include <utility>

namespace similis::cli {

ReferencePictures::ReferencePictures(
    PictureClip clip, const FrameSelection& selection, bool reads_ahead)
    : name_(clip.name), selection_(selection) {
  clip_.emplace(
      std::move(clip), [selection](std::int64_t i) { return selection.has(i); }, reads_ahead);
}

ReferencePictures::ReferencePictures(std::shared_ptr<ReferenceFrames> video)
    : name_(video->source().name()),
      video_(std::move(video)),
      rgb_(RgbFrames(video_->source().format(), name_)) {}

bool ReferencePictures::go_to(std::int64_t place, const Execution& exec) {
  if (place == place_) return true;
  if (error_) std::rethrow_exception(error_);
  if (is_at_end_) return false;
  try {
    is_at_end_ = !take_next(place, exec);
  } catch (...) {
    error_ = std::current_exception();
    throw;
  }
  if (!is_at_end_) place_ = place;
  return !is_at_end_;
}

bool ReferencePictures::take_next(std::int64_t place, const Execution& exec) {
  if (clip_) {
    number_ = selection_.next(number_ + 1);
    picture_ = clip_->picture(number_);
    return picture_ != nullptr;
  }
  if (!video_->go_to(place)) return false;
  number_ = video_->frame().number;
  picture_ = std::make_shared<const media::Image>(rgb_->picture(video_->frame(), exec));
  return true;
}

std::optional<std::int64_t> ReferencePictures::frames() const {
  return clip_ ? clip_->frames() : video_frames_;
}

std::optional<std::int64_t> ReferencePictures::expected_frames() const {
  return clip_ ? clip_->expected_frames() : video_->source().expected_frames();
}

void ReferencePictures::read_rest() {
  if (clip_) return clip_->read_rest();
  video_->read_rest();
  video_frames_ = video_->frames_read();
}

media::FrameRate ReferencePictures::rate() const {
  return clip_ ? clip_->rate() : video_->source().format().rate;
}

std::string ReferencePictures::conversion() const {
  return clip_ ? clip_->conversion() : rgb_->words();
}

void ReferencePictures::cancel() { clip_ ? clip_->cancel() : video_->cancel(); }

}  // namespace similis::cli
