// SPDX-License-Identifier: Apache-2.0
// The line that says how far a long run is: "12/40 pairs, 3.1/s, 9 s left", on a terminal only.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace similis::cli {

/// done/total, rate and remaining time after `seconds`.
std::string progress_line(std::int64_t done, std::int64_t total, double seconds);

/// Writes to stderr if that is a terminal. Whoever writes there too calls clear() first.
class Progress {
 public:
  explicit Progress(std::int64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step();
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  std::int64_t done_ = 0;
  std::int64_t total_;
  bool is_shown_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_shown_ = {};
};

}  // namespace similis::cli
