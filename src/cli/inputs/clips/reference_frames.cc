// SPDX-License-Identifier: Apache-2.0
#include "src/cli/inputs/clips/reference_frames.h"

#include <utility>

namespace similis::cli {

ReferenceFrames::ReferenceFrames(
    std::unique_ptr<media::FrameSource> source, const FrameSelection& selection, bool on_thread)
    : frames_(
          std::move(source), [selection](std::int64_t frame) { return selection.has(frame); },
          on_thread) {}

bool ReferenceFrames::go_to(std::int64_t place) {
  if (place == place_) return true;
  if (error_) std::rethrow_exception(error_);
  if (is_at_end_) return false;
  try {
    is_at_end_ = !frames_.next(frame_);
  } catch (...) {
    error_ = std::current_exception();
    throw;
  }
  if (!is_at_end_) place_ = place;
  return !is_at_end_;
}

void ReferenceFrames::read_rest() {
  media::VideoFrame passed;
  while (!is_at_end_) is_at_end_ = !frames_.next(passed);
}

}  // namespace similis::cli
