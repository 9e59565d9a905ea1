// SPDX-License-Identifier: Apache-2.0
// The frames of an animation, or the pages of a file, decoded on a thread of their own while
// earlier ones are scored.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "src/media/picture/image.h"

namespace similis::media {

class PicturesAhead {
 public:
  /// Reads the bytes of a file; `name` stands for it in errors. One picture is kept ready.
  PicturesAhead(std::vector<std::uint8_t> bytes, const std::string& name);
  ~PicturesAhead();
  PicturesAhead(const PicturesAhead&) = delete;
  PicturesAhead& operator=(const PicturesAhead&) = delete;

  /// The next picture; empty after the last. Throws what read_pictures() throws there.
  std::optional<Image> next();

 private:
  void read_all();

  std::vector<std::uint8_t> bytes_;
  std::string name_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Image> ready_;
  bool is_done_ = false, is_stopped_ = false;
  std::exception_ptr error_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace similis::media
