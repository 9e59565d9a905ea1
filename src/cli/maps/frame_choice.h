// SPDX-License-Identifier: Apache-2.0
// The frames of which maps are wanted: those that were asked for, or the worst so far.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "src/cli/metrics/metric_request.h"

namespace similis::cli {

/// The choice of the frame of one map.
class FrameChoice {
 public:
  explicit FrameChoice(const MapRequest& map) : map_(&map) {}

  const MapRequest& map() const { return *map_; }
  /// True if this frame takes the place of the one before. `score` is called if it decides.
  bool takes(std::int64_t frame, const std::function<double()>& score);
  bool is_found() const { return loss_.has_value(); }
  /// True if the frame has a loss that can be compared: equal frames may have an infinite score.
  bool is_comparable() const;
  double score() const { return score_; }
  /// Throws InvalidArgument, naming the file, if the frame was not there.
  void require_found(const std::string& distorted) const;

 private:
  const MapRequest* map_;
  std::optional<double> loss_;  // larger is worse
  double score_ = 0;
};

}  // namespace similis::cli
