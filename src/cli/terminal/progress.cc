// SPDX-License-Identifier: Apache-2.0
#include "src/cli/terminal/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "src/cli/terminal/notes.h"

namespace similis::cli {
namespace {

constexpr auto kRefresh = std::chrono::milliseconds(100);

}  // namespace

std::string duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::ceil(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

std::string progress_line(
    const char* what, std::int64_t done, std::optional<std::int64_t> total, double seconds) {
  const std::int64_t left = total ? *total - done : -1;  // below 0: not known
  std::string line = left < 0 ? fmt::format("{} {}", done, what)
                              : fmt::format("{}/{} {}", done, done + left, what);
  if (done == 0 || seconds <= 0) return line;
  const double rate = static_cast<double>(done) / seconds;
  constexpr double kPerMinute = 60;
  const bool is_slow = rate < 0.1;
  line += is_slow ? fmt::format(", {:.2g}/min", rate * kPerMinute)
                  : fmt::format(", {:.{}f}/s", rate, rate < 10 ? 1 : 0);
  if (left < 0) return line;
  return line + fmt::format(", {} left", duration(static_cast<double>(left) / rate));
}

Progress::Progress(const char* what, std::optional<std::int64_t> total)
    : what_(what),
      total_(total),
      is_shown_(total.value_or(2) > 1 && !are_notes_silent() && isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() { clear(); }

void Progress::step() {
  ++done_;
  const Clock::time_point now = Clock::now();
  if (!is_shown_ || now - last_shown_ < kRefresh) return;
  last_shown_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  std::fputs(("\r\x1b[K" + progress_line(what_, done_, total_, seconds)).c_str(), stderr);
  std::fflush(stderr);
}

void Progress::clear() {
  if (is_shown_ && last_shown_ != Clock::time_point{}) std::fputs("\r\x1b[K", stderr);
  last_shown_ = {};
}

}  // namespace similis::cli
