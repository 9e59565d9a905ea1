// SPDX-License-Identifier: Apache-2.0
#include "src/media/video/frames_ahead.h"

#include <algorithm>
#include <utility>

namespace similis::media {

FramesAhead::FramesAhead(std::unique_ptr<FrameSource> source,
    std::function<bool(std::int64_t)> is_wanted, bool on_thread)
    : source_(std::move(source)),
      is_wanted_(std::move(is_wanted)),
      capacity_(source_->is_plain_file()
                    ? 1
                    : std::clamp<std::size_t>(
                          kAheadBytes / source_->format().frame_bytes(), 1, kFramesAhead)) {
  if (on_thread) thread_ = std::thread([this] { read_all(); });
}

FramesAhead::~FramesAhead() {
  if (!thread_.joinable()) return;
  source_->cancel();
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool FramesAhead::read_wanted(VideoFrame& frame) {
  while (source_->read(frame)) {
    const std::lock_guard lock(mutex_);
    ++frames_read_;
    if (is_stopped_) return false;
    if (is_wanted_(frame.number)) return true;
  }
  return false;
}

// Takes used memory into `spare`. False once reading is to stop.
bool FramesAhead::wait_for_room(VideoFrame& spare) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_stopped_ || ready_.size() < capacity_; });
  if (!spare_.empty()) {
    spare = std::move(spare_.back());
    spare_.pop_back();
  }
  return !is_stopped_;
}

void FramesAhead::read_all() {
  std::exception_ptr error;
  try {
    for (VideoFrame frame; wait_for_room(frame) && read_wanted(frame); frame = {}) {
      const std::lock_guard lock(mutex_);
      ready_.push_back(std::move(frame));
      changed_.notify_all();
    }
  } catch (...) {
    error = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  error_ = error;
  is_done_ = true;
  changed_.notify_all();
}

bool FramesAhead::next(VideoFrame& frame) {
  if (!thread_.joinable()) return read_wanted(frame);
  std::unique_lock lock(mutex_);
  if (frame.bytes.capacity() > 0) spare_.push_back(std::move(frame));
  changed_.wait(lock, [&] { return is_done_ || !ready_.empty(); });
  if (ready_.empty()) {
    if (error_) std::rethrow_exception(error_);
    return false;
  }
  frame = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return true;
}

std::int64_t FramesAhead::frames_read() const {
  const std::lock_guard lock(mutex_);
  return frames_read_;
}

}  // namespace similis::media
