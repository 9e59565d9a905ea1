// SPDX-License-Identifier: Apache-2.0
// A separable window: the taps along z, y and x, each of odd length with its centre in the middle.
#pragma once

#include <vector>

#include "similis/window.hpp"

namespace similis {

/// exp(-(i-r)²/2σ²), normalised to sum to 1; the f32 values of the taps sum to exactly 1 too, so
/// that a flat area keeps its value.
std::vector<double> gaussian_taps(int window_size, double sigma);

struct Window {
  std::vector<double> z = {1.0}, y = {1.0}, x = {1.0};

  int radius_z() const { return static_cast<int>(z.size() / 2); }
  int radius_y() const { return static_cast<int>(y.size() / 2); }
  int radius_x() const { return static_cast<int>(x.size() / 2); }
};

}  // namespace similis
