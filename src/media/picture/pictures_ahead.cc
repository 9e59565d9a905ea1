// SPDX-License-Identifier: Apache-2.0
#include "src/media/picture/pictures_ahead.h"

#include <utility>

namespace similis::media {

PicturesAhead::PicturesAhead(std::function<void(const TakePicture&)> read_all, bool reads_ahead)
    : read_all_(std::move(read_all)),
      reads_ahead_(reads_ahead),
      thread_([this] { this->read_all(); }) {}

PicturesAhead::~PicturesAhead() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void PicturesAhead::read_all() {
  std::exception_ptr error;
  const auto may_read = [this] { return is_stopped_ || reads_ahead_ || is_asked_; };
  try {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, may_read);
    }
    read_all_([&](Image picture) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return is_stopped_ || !ready_; });
      ready_ = std::move(picture);
      is_asked_ = false;
      changed_.notify_all();
      changed_.wait(lock, may_read);
      return !is_stopped_;
    });
  } catch (...) {
    error = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  error_ = error;
  is_done_ = true;
  changed_.notify_all();
}

std::optional<Image> PicturesAhead::next() {
  std::unique_lock lock(mutex_);
  is_asked_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return is_done_ || ready_; });
  if (!ready_ && error_) std::rethrow_exception(error_);
  std::optional<Image> picture = std::exchange(ready_, std::nullopt);
  changed_.notify_all();
  return picture;
}

}  // namespace similis::media
