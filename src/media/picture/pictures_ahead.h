// SPDX-License-Identifier: Apache-2.0
// The frames of an animation, the pages of a file or the pictures of a sequence, decoded on a
// thread of their own while earlier ones are scored.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "src/media/picture/decode.h"

namespace similis::media {

class PicturesAhead {
 public:
  /// `read_all` reads all pictures, as read_pictures() does. One picture is kept ready, or, without
  /// `reads_ahead`, each is read while next() waits, so that one thread works at a time.
  explicit PicturesAhead(std::function<void(const TakePicture&)> read_all, bool reads_ahead = true);
  ~PicturesAhead();
  PicturesAhead(const PicturesAhead&) = delete;
  PicturesAhead& operator=(const PicturesAhead&) = delete;

  /// The next picture; empty after the last. Throws what reading throws there.
  std::optional<Image> next();

 private:
  void read_all();

  std::function<void(const TakePicture&)> read_all_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Image> ready_;
  bool reads_ahead_, is_asked_ = false;
  bool is_done_ = false, is_stopped_ = false;
  std::exception_ptr error_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace similis::media
