// SPDX-License-Identifier: Apache-2.0
#include "src/cli/results/worst_frames.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace similis::cli {
namespace {

constexpr double kApartSeconds = 0.5;
constexpr double kApartFrames = 12;  // half a second of film

}  // namespace

std::optional<double> seconds_of(const ScoredPair& pair, std::int64_t frame) {
  if (!pair.rate.is_known()) return std::nullopt;
  return static_cast<double>(frame) / pair.rate.value();
}

std::vector<WorstFrame> worst_frames(
    const ScoredPair& pair, std::size_t name, bool is_error, int count) {
  std::vector<WorstFrame> frames;
  for (const FrameScores& frame : pair.frames) {
    const std::optional<double>& value = frame.values[name];
    if (!value || std::isnan(*value)) continue;
    frames.push_back({frame.frame, seconds_of(pair, frame.frame), *value});
  }
  std::stable_sort(frames.begin(), frames.end(), [&](const WorstFrame& a, const WorstFrame& b) {
    return is_error ? a.value > b.value : a.value < b.value;
  });
  const double apart = pair.rate.is_known() ? kApartSeconds * pair.rate.value() : kApartFrames;
  std::vector<WorstFrame> worst;
  for (const WorstFrame& frame : frames) {
    if (worst.size() == static_cast<std::size_t>(count)) break;
    const bool is_near = std::any_of(worst.begin(), worst.end(), [&](const WorstFrame& other) {
      return static_cast<double>(std::abs(frame.frame - other.frame)) < apart;
    });
    if (!is_near) worst.push_back(frame);
  }
  return worst;
}

std::string worst_frame_text(const WorstFrame& frame) {
  if (!frame.seconds) return fmt::format("{}", frame.frame);
  const auto milliseconds = static_cast<std::int64_t>(std::llround(*frame.seconds * 1000));
  return fmt::format("{} ({}:{:02}.{:03})", frame.frame, milliseconds / 60000,
      milliseconds / 1000 % 60, milliseconds % 1000);
}

}  // namespace similis::cli
