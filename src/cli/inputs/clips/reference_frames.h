// SPDX-License-Identifier: Apache-2.0
// The frames of a reference, read once for all videos that are compared with it in step.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>

#include "src/cli/inputs/frame_selection.h"
#include "src/media/video/frames_ahead.h"

namespace similis::cli {

class ReferenceFrames {
 public:
  /// With `on_thread` the frames are read on a thread of their own.
  ReferenceFrames(
      std::unique_ptr<media::FrameSource> source, const FrameSelection& selection, bool on_thread);

  /// Goes to the selected frame with this number in the selection, which is that of the last call
  /// or the one after it. False at the end of the video. Throws what reading throws, in each call
  /// for that frame.
  bool go_to(std::int64_t place);
  const media::VideoFrame& frame() const { return frame_; }  ///< of the last go_to()

  /// Reads to the end of the video: it may be damaged there, and its length is reported.
  void read_rest();
  std::int64_t frames_read() const { return frames_.frames_read(); }

  const media::FrameSource& source() const { return frames_.source(); }
  void cancel() { frames_.cancel(); }  ///< as FrameSource::cancel()

 private:
  media::FramesAhead frames_;
  media::VideoFrame frame_;
  std::int64_t place_ = -1;
  bool is_at_end_ = false;
  std::exception_ptr error_;
};

}  // namespace similis::cli
