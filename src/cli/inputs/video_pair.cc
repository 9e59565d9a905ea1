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

}  // namespace

VideoPair::VideoPair(std::unique_ptr<FrameSource> reference, std::unique_ptr<FrameSource> distorted,
    const FrameSelection& selection, bool on_threads, Depths depths)
    : selection_(selection),
      format_(require_alike(*reference, *distorted)),
      distorted_format_(distorted->format()),
      reference_name_(reference->name()),
      distorted_name_(distorted->name()),
      reference_source_(
          std::move(reference), [selection](std::int64_t frame) { return selection.has(frame); },
          on_threads),
      distorted_source_(
          std::move(distorted),
          [selection](std::int64_t frame) { return selection.has(frame - selection.offset); },
          on_threads) {
  if (depths == Depths::must_agree) require_same_depth();
}

void VideoPair::require_same_depth() const {
  const int x = format_.pixels.bit_depth, y = distorted_format_.pixels.bit_depth;
  require(x == y, "{} has {} bits per sample but {} has {}; bit depths must match", reference_name_,
      x, distorted_name_, y);
}

std::optional<std::int64_t> VideoPair::expected_pairs() const {
  const auto reference = reference_source_.source().expected_frames();
  const auto distorted = distorted_source_.source().expected_frames();
  if (!reference && !distorted && !selection_.end) return std::nullopt;
  constexpr std::int64_t kMany = std::int64_t{1} << 60;
  return selection_.count(reference.value_or(kMany), distorted.value_or(kMany));
}

bool VideoPair::selection_has_more() const {
  return !selection_.end || selection_.next(has_begun_ ? frame() + 1 : 0) < *selection_.end;
}

bool VideoPair::next() {
  if (!selection_has_more()) return false;
  if (!reference_source_.next(reference_frame_)) {
    count_rest(distorted_source_, distorted_frame_);
    return false;
  }
  if (!distorted_source_.next(distorted_frame_)) {
    count_rest(reference_source_, reference_frame_);
    return false;
  }
  has_begun_ = true;
  return true;
}

// Reads the longer side to its end: it may be damaged there, and its length is reported.
void VideoPair::count_rest(media::FramesAhead& longer, media::VideoFrame& frame) {
  while (longer.next(frame)) {
  }
  counts_ = {reference_source_.frames_read(), distorted_source_.frames_read()};
}

}  // namespace similis::cli
