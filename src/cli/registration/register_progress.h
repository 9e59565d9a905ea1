// SPDX-License-Identifier: Apache-2.0
// The progress line of a registration, on a terminal only.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "similis/register.hpp"
#include "src/registration/deformable.h"

namespace similis::cli {

/// "deformable 1/2: 12/40, loss -1.8213, smallest determinant 0.412, 9 s left"
std::string register_progress_line(const RegisterProgress& at, std::optional<double> seconds_left);

/// Seconds of the iterations that are left, if one at this level takes so long: at other levels it
/// takes as long by their number of voxels. Nothing is known of linear stages.
std::optional<double> register_seconds_left(const RegisterProgress& at, double seconds,
    const registration_internal::DeformableSettings& settings, int rank);

class RegisterProgressLine {
 public:
  RegisterProgressLine(registration_internal::DeformableSettings settings, int rank);
  ~RegisterProgressLine();
  RegisterProgressLine(const RegisterProgressLine&) = delete;
  RegisterProgressLine& operator=(const RegisterProgressLine&) = delete;

  void show(const RegisterProgress& at);

 private:
  using Clock = std::chrono::steady_clock;
  registration_internal::DeformableSettings settings_;
  int rank_;
  bool is_shown_;
  Clock::time_point level_start_ = Clock::now(), last_shown_ = {};
};

}  // namespace similis::cli
