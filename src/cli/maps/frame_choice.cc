// SPDX-License-Identifier: Apache-2.0
#include "src/cli/maps/frame_choice.h"

#include <cmath>

#include "src/core/require.h"

namespace similis::cli {

bool FrameChoice::takes(std::int64_t frame, const std::function<double()>& score) {
  if (map_->frame && *map_->frame != frame) return false;
  const double value = map_->frame ? 0 : score();
  const double loss = map_->measure.is_error ? value : -value;
  if (loss_ && !std::isnan(*loss_) && !(loss > *loss_)) return false;
  loss_ = loss;
  score_ = value;
  return true;
}

bool FrameChoice::is_comparable() const { return loss_ && std::isfinite(*loss_); }

void FrameChoice::require_found(const std::string& distorted) const {
  require(is_found(), "--map: frame {} of {} is not scored; it has no map", map_->frame.value_or(0),
      distorted);
}

}  // namespace similis::cli
