// SPDX-License-Identifier: Apache-2.0
#include "src/cli/inputs/video_pair.h"

#include <utility>

#include "src/core/require.h"

namespace similis::cli {
namespace {

using media::FrameSource;
using media::VideoFormat;

const VideoFormat& require_alike(const FrameSource& reference, const FrameSource& distorted) {
  const VideoFormat &x = reference.format(), &y = distorted.format();
  require(x.width == y.width && x.height == y.height,
      "{} is {}×{} but {} is {}×{}; sizes must match", reference.name(), x.width, x.height,
      distorted.name(), y.width, y.height);
  const std::string x_chroma = chroma_name(x.pixels), y_chroma = chroma_name(y.pixels);
  require(x_chroma == y_chroma, "{} has chroma {} but {} has {}; chroma subsampling must match",
      reference.name(), x_chroma, distorted.name(), y_chroma);
  return x;
}

bool is_full_range(const VideoFormat& format) {
  return format.color.range == "pc" || format.color.range == "jpeg";
}

}  // namespace

VideoPair::VideoPair(std::shared_ptr<ReferenceFrames> reference,
    std::unique_ptr<FrameSource> distorted, const FrameSelection& selection, bool on_thread,
    Depths depths)
    : selection_(selection),
      format_(require_alike(reference->source(), *distorted)),
      distorted_format_(distorted->format()),
      reference_name_(reference->source().name()),
      distorted_name_(distorted->name()),
      reference_(std::move(reference)),
      distorted_source_(
          std::move(distorted),
          [selection](std::int64_t frame) { return selection.has(frame - selection.offset); },
          on_thread) {
  if (depths == Depths::must_agree) require_same_depth();
}

void VideoPair::require_same_depth() const {
  const int x = format_.pixels.bit_depth, y = distorted_format_.pixels.bit_depth;
  require(x == y, "{} has {} bits per sample but {} has {}; bit depths must match", reference_name_,
      x, distorted_name_, y);
}

void VideoPair::require_same_range() const {
  const bool x = is_full_range(format_), y = is_full_range(distorted_format_);
  const auto word = [](bool is_full) { return is_full ? "full" : "limited"; };
  require(x == y, "{} has {} range but {} has {} range; ranges must match", reference_name_,
      word(x), distorted_name_, word(y));
}

std::optional<std::int64_t> VideoPair::expected_pairs() const {
  const auto reference = reference_->source().expected_frames();
  const auto distorted = distorted_source_.source().expected_frames();
  if (!reference && !distorted && !selection_.end) return std::nullopt;
  constexpr std::int64_t kMany = std::int64_t{1} << 60;
  return selection_.count(reference.value_or(kMany), distorted.value_or(kMany));
}

bool VideoPair::next() {
  const std::int64_t from = place_ < 0 ? 0 : distorted_frame_.number - selection_.offset + 1;
  if (selection_.end && selection_.next(from) >= *selection_.end) return false;
  has_ended_ = !reference_->go_to(place_ + 1) || !distorted_source_.next(distorted_frame_);
  if (!has_ended_) ++place_;
  return !has_ended_;
}

void VideoPair::read_rest() {
  if (!has_ended_) return;
  reference_->read_rest();
  media::VideoFrame passed;
  while (distorted_source_.next(passed)) {
  }
  counts_ = {reference_->frames_read(), distorted_source_.frames_read()};
}

void VideoPair::cancel() {
  reference_->cancel();
  distorted_source_.cancel();
}

}  // namespace similis::cli
