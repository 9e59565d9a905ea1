// SPDX-License-Identifier: Apache-2.0
// Motion of a clip's frames, from sums between frames that come one by one.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace similis::vmaf_internal {

struct MotionOptions {
  bool forces_zero = false, has_five_frame_window = false, has_moving_average = false;
  double blend_factor = 1, blend_offset = 40, fps_weight = 1, largest = 10000;
};

class MotionSeries {
 public:
  MotionSeries(const MotionOptions& options, double pixels) : options_(options), pixels_(pixels) {}

  /// The number of frames that the difference looks back.
  std::int64_t lag() const { return options_.has_five_frame_window ? 2 : 1; }
  bool looks_back() const { return !options_.forces_zero; }
  /// The next frame's sum of magnitudes; 0 where there is no earlier frame.
  void push(std::int64_t sad);
  void finish() { is_finished_ = true; }

  /// True once the numbers of a frame can no more change.
  bool is_final(std::int64_t frame) const;
  double sad_score(std::int64_t frame) const;
  double motion2(std::int64_t frame) const;
  double motion3(std::int64_t frame) const;

 private:
  std::int64_t count() const { return static_cast<std::int64_t>(scores_.size()); }
  double blended(std::int64_t frame) const;
  MotionOptions options_;
  double pixels_;
  std::vector<double> scores_;
  bool is_finished_ = false;
};

}  // namespace similis::vmaf_internal
