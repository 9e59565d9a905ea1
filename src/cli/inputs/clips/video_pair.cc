// SPDX-License-Identifier: Apache-2.0
#include "src/cli/inputs/clips/video_pair.h"

#include <utility>

#include "src/core/require.h"

namespace similis::cli {
namespace {

using media::FrameSource;
using media::VideoFormat;

// Formats as they are where nothing may be done.
AdaptedFormats formats_of(
    const FrameSource& reference, const FrameSource& distorted, const VideoOptions& options) {
  if (!options.adaptation) return {reference.format(), distorted.format(), {}};
  return adapted_formats(reference.format(), distorted.format(), reference.name(), distorted.name(),
      *options.adaptation);
}

}  // namespace

VideoPair::VideoPair(std::shared_ptr<ReferenceFrames> reference,
    std::unique_ptr<FrameSource> distorted, const VideoOptions& options, bool on_thread,
    const Execution& exec)
    : VideoPair(reference, std::move(distorted), options, on_thread, exec,
          formats_of(reference->source(), *distorted, options)) {}

VideoPair::VideoPair(std::shared_ptr<ReferenceFrames> reference,
    std::unique_ptr<FrameSource>&& distorted, const VideoOptions& options, bool on_thread,
    const Execution& exec, AdaptedFormats formats)
    : selection_(options.selection),
      adaptation_(options.adaptation),
      match_(formats.match),
      exec_(exec),
      done_(std::move(formats.done)),
      format_(formats.reference),
      distorted_format_(formats.distorted),
      reference_name_(reference->source().name()),
      distorted_name_(distorted->name()),
      reference_(std::move(reference)),
      distorted_source_(
          std::move(distorted),
          [selection = options.selection, match = match_](std::int64_t frame) {
            return match ? match->is_wanted(frame, selection)
                         : selection.has(frame - selection.offset);
          },
          on_thread),
      reference_adapter_(reference_->source().format(), adaptation_.value_or(Adaptation{}).crop,
          format_, std::nullopt),
      distorted_adapter_(distorted_source_.source().format(),
          adaptation_.value_or(Adaptation{}).crop_distorted, distorted_format_,
          adaptation_.value_or(Adaptation{}).resize) {
  require_alike();
  if (options.depths == Depths::must_agree) require_same_depth();
}

void VideoPair::require_alike() const {
  const VideoFormat &x = format_, &y = distorted_format_;
  require(x.width == y.width && x.height == y.height, "{} is {}×{} but {} is {}×{}; {}",
      reference_name_, x.width, x.height, distorted_name_, y.width, y.height,
      sizes_must_match(adaptation_));
  const std::string x_chroma = chroma_name(x.pixels), y_chroma = chroma_name(y.pixels);
  require(x_chroma == y_chroma, "{} has chroma {} but {} has {}; chroma subsampling must match",
      reference_name_, x_chroma, distorted_name_, y_chroma);
}

void VideoPair::require_same_depth() const {
  const int x = format_.pixels.bit_depth, y = distorted_format_.pixels.bit_depth;
  require(x == y, "{} has {} bits per sample but {} has {}; bit depths must match{}",
      reference_name_, x, distorted_name_, y, adaptation_ ? ", or give --depth match" : "");
}

void VideoPair::require_same_range() const {
  if (adaptation_ && adaptation_->range == RangeRule::as_stored) return;
  const bool x = media::is_full_range(format_), y = media::is_full_range(distorted_format_);
  const auto words = [](const VideoFormat& format) {
    if (media::is_full_range(format)) return "has full range";
    return format.color.range.empty() ? "has limited range (no tag)" : "has limited range";
  };
  require(x == y, "{} {} but {} {}; {}", reference_name_, words(format_), distorted_name_,
      words(distorted_format_),
      adaptation_ ? "give --range match to convert, or --range as-stored if a tag is wrong"
                  : "ranges must match");
}

std::optional<std::int64_t> VideoPair::expected_pairs() const {
  const auto reference = reference_->source().expected_frames();
  const auto distorted = distorted_source_.source().expected_frames();
  if (!reference && !distorted && !selection_.end) return std::nullopt;
  constexpr std::int64_t kMany = std::int64_t{1} << 60;
  std::int64_t limit = distorted.value_or(kMany);
  if (match_ && distorted) limit = match_->reference_frames(limit);
  return selection_.count(reference.value_or(kMany), limit);
}

std::int64_t VideoPair::distorted_for(std::int64_t reference) const {
  return match_ ? match_->distorted(reference) : reference + selection_.offset;
}

// Frames of a slower video serve several times.
bool VideoPair::read_distorted(std::int64_t number) {
  if (place_ >= 0 && distorted_frame_.number == number) return true;
  return distorted_source_.next(distorted_frame_);
}

bool VideoPair::next() {
  if (selection_.end && selection_.next(number_ + 1) >= *selection_.end) return false;
  has_ended_ =
      !reference_->go_to(place_ + 1) || !read_distorted(distorted_for(reference_->frame().number));
  if (has_ended_) return false;
  ++place_;
  number_ = reference_->frame().number;
  reference_frame_ = &reference_adapter_.adapted(reference_->frame(), exec_);
  adapted_frame_ = &distorted_adapter_.adapted(distorted_frame_, exec_);
  return true;
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
