// SPDX-License-Identifier: Apache-2.0
#include "src/media/picture/pictures_ahead.h"

#include <utility>

namespace similis::media {

PicturesAhead::PicturesAhead(std::function<void(const TakePicture&)> read_all)
    : read_all_(std::move(read_all)), thread_([this] { this->read_all(); }) {}

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
  try {
    read_all_([this](Image picture) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return is_stopped_ || !ready_; });
      ready_ = std::move(picture);
      changed_.notify_all();
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
  changed_.wait(lock, [this] { return is_done_ || ready_; });
  if (!ready_ && error_) std::rethrow_exception(error_);
  std::optional<Image> picture = std::exchange(ready_, std::nullopt);
  changed_.notify_all();
  return picture;
}

}  // namespace similis::media
