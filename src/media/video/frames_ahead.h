// SPDX-License-Identifier: Apache-2.0
// Frames of a video read on a thread of their own while earlier ones are scored.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "src/media/video/video.h"

namespace similis::media {

/// Frames read ahead: one is read while another waits, which is all that hides decoding.
inline constexpr std::size_t kFramesAhead = 2;
/// Memory that they may take, unless one frame takes more.
inline constexpr std::size_t kAheadBytes = std::size_t{1} << 26;

class FramesAhead {
 public:
  /// Reads `source` to its end and keeps the frames whose number is wanted, one frame ahead of a
  /// plain file and kFramesAhead else. With `on_thread` false each is read when it is asked for.
  FramesAhead(std::unique_ptr<FrameSource> source,
      std::function<bool(std::int64_t number)> is_wanted, bool on_thread = true);
  /// Stops reading, whatever the source waits for.
  ~FramesAhead();
  FramesAhead(const FramesAhead&) = delete;
  FramesAhead& operator=(const FramesAhead&) = delete;

  const FrameSource& source() const { return *source_; }

  /// The next wanted frame into `frame`, whose memory serves for a later one. False at the end.
  /// Throws what the source threw, once the frames before that are taken.
  bool next(VideoFrame& frame);

  /// Makes next() end where the source has come to, whatever it waits for. Any thread may call it.
  void cancel() { source_->cancel(); }

  /// The number of frames read, wanted or not; that of the video once next() has returned false.
  std::int64_t frames_read() const;

 private:
  void read_all();
  bool read_wanted(VideoFrame& frame);
  bool wait_for_room(VideoFrame& spare);

  std::unique_ptr<FrameSource> source_;
  std::function<bool(std::int64_t)> is_wanted_;
  std::size_t capacity_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<VideoFrame> ready_;
  std::vector<VideoFrame> spare_;
  std::int64_t frames_read_ = 0;
  bool is_done_ = false, is_stopped_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace similis::media
