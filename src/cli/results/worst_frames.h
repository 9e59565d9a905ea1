// SPDX-License-Identifier: Apache-2.0
// The frames of a video that score worst.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/cli/results/report.h"

namespace similis::cli {

struct WorstFrame {
  std::int64_t frame;
  std::optional<double> seconds;  ///< from the video's start; empty if its rate is not known
  double value;
};

/// Up to `count` frames, the worst first, no two within half a second, or within 12 frames where
/// the rate is not known.
std::vector<WorstFrame> worst_frames(
    const ScoredPair& pair, std::size_t name, bool is_error, int count);

/// "37 (0:01.540)", or "37".
std::string worst_frame_text(const WorstFrame& frame);

/// The time of a frame; empty if the video's rate is not known.
std::optional<double> seconds_of(const ScoredPair& pair, std::int64_t frame);

}  // namespace similis::cli
