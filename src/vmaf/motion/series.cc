// SPDX-License-Identifier: Apache-2.0
#include "src/vmaf/motion/series.h"

#include <algorithm>

namespace similis::vmaf_internal {

void MotionSeries::push(std::int64_t sad) {
  const bool is_measured = looks_back() && count() >= lag();
  const double score = static_cast<double>(sad) / 256 / pixels_ * options_.fps_weight;
  scores_.push_back(is_measured ? std::min(score, options_.largest) : 0);
}

bool MotionSeries::is_final(std::int64_t frame) const {
  return is_finished_ || count() > std::max(frame + 1, lag());
}

double MotionSeries::sad_score(std::int64_t frame) const {
  return scores_[static_cast<std::size_t>(frame)];
}

double MotionSeries::motion2(std::int64_t frame) const {
  if (frame < lag()) return 0;
  if (frame + 1 == count()) return sad_score(frame);
  const double next = sad_score(frame + 1);
  if (!options_.has_five_frame_window) return std::min(sad_score(frame), next);
  return frame == lag() ? next : std::min(sad_score(frame - 1), next);
}

double MotionSeries::blended(std::int64_t frame) const {
  const double factor = options_.blend_factor;
  // The first frames have no measure: they take the first one that there is.
  const bool is_measured = frame >= lag();
  if (!is_measured && count() <= lag()) return 0;
  const double motion = is_measured ? motion2(frame) : sad_score(lag());
  const double blend = motion * factor + (1 - factor) * std::min(options_.blend_offset, motion);
  return std::min(blend, options_.largest);
}

double MotionSeries::motion3(std::int64_t frame) const {
  const double score = blended(frame);
  if (!options_.has_moving_average || frame < lag()) return score;
  return (score + blended(frame - 1)) / 2;
}

}  // namespace similis::vmaf_internal
