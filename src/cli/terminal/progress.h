// SPDX-License-Identifier: Apache-2.0
// The progress line of a long run: "12/40 frames, 3.1/s, 9 s left", on a terminal only.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace similis::cli {

/// done/total, rate and remaining time after `seconds`; done and rate if the total is not known, or
/// was too small.
std::string progress_line(
    const char* what, std::int64_t done, std::optional<std::int64_t> total, double seconds);

/// "9 s", "2 min 05 s", "1 h 03 min": rounded up.
std::string duration(double seconds);

/// Writes to stderr if that is a terminal. Call clear() before writing anything else there.
class Progress {
 public:
  /// Shows nothing for a total of 0 or 1.
  Progress(const char* what, std::optional<std::int64_t> total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step();
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  const char* what_;
  std::int64_t done_ = 0;
  std::optional<std::int64_t> total_;
  bool is_shown_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_shown_ = {};
};

}  // namespace similis::cli
