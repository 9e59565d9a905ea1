// SPDX-License-Identifier: Apache-2.0
#include "src/cli/registration/register_progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "src/cli/terminal/progress.h"
#include "src/registration/options.h"

namespace similis::cli {
namespace {

constexpr auto kRefresh = std::chrono::milliseconds(100);

}  // namespace

std::string register_progress_line(const RegisterProgress& at, std::optional<double> seconds_left) {
  std::string line = registration_internal::name(at.stage);
  if (at.shrink > 0) line += fmt::format(" 1/{}", at.shrink);
  line += fmt::format(": {}/{}, loss {:.4f}", at.iteration + 1, at.iterations, at.loss);
  if (at.shrink > 0) line += fmt::format(", smallest determinant {:.3f}", at.min_jacobian);
  if (seconds_left) line += fmt::format(", {} left", duration(*seconds_left));
  return line;
}

std::optional<double> register_seconds_left(const RegisterProgress& at, double seconds,
    const registration_internal::DeformableSettings& settings, int rank) {
  if (at.shrink == 0) return std::nullopt;
  double left = seconds * (at.iterations - at.iteration - 1);
  for (std::size_t i = 0; i < settings.levels.size(); ++i) {
    if (settings.levels[i] >= at.shrink) continue;
    const double larger = static_cast<double>(at.shrink) / settings.levels[i];
    left += seconds * settings.iterations[i] * std::pow(larger, rank);
  }
  return left;
}

RegisterProgressLine::RegisterProgressLine(
    registration_internal::DeformableSettings settings, int rank)
    : settings_(std::move(settings)), rank_(rank), is_shown_(isatty(STDERR_FILENO) != 0) {}

RegisterProgressLine::~RegisterProgressLine() {
  if (is_shown_ && last_shown_ != Clock::time_point{}) std::fputs("\r\x1b[K", stderr);
}

void RegisterProgressLine::show(const RegisterProgress& at) {
  const Clock::time_point now = Clock::now();
  if (at.iteration == 0) level_start_ = now;
  if (!is_shown_ || now - last_shown_ < kRefresh) return;
  last_shown_ = now;
  std::optional<double> left;
  if (at.iteration > 0) {
    const double seconds = std::chrono::duration<double>(now - level_start_).count();
    left = register_seconds_left(at, seconds / at.iteration, settings_, rank_);
  }
  std::fputs(("\r\x1b[K" + register_progress_line(at, left)).c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace similis::cli
