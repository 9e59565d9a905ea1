// SPDX-License-Identifier: Apache-2.0
#include "src/window/window.h"

#include <cmath>
#include <cstddef>

namespace similis {
namespace {

// The sum of the taps as a kernel in f32 adds them up.
float sum_in_f32(const std::vector<double>& taps) {
  float sum = 0;
  for (const double tap : taps) sum += static_cast<float>(tap);
  return sum;
}

}  // namespace

std::vector<double> gaussian_taps(int window_size, double sigma) {
  const int radius = window_size / 2;
  std::vector<double> taps;
  double sum = 0;
  for (int i = -radius; i <= radius; ++i) {
    taps.push_back(std::exp(-(i / sigma) * (i / sigma) / 2));
    sum += taps.back();
  }
  for (double& tap : taps) tap /= sum;
  // The centre takes what rounding left over. Two rounds suffice: the second is below one bit.
  double& centre = taps[static_cast<std::size_t>(radius)];
  for (int round = 0; round < 4 && sum_in_f32(taps) != 1.0f; ++round) {
    centre += 1.0 - static_cast<double>(sum_in_f32(taps));
  }
  return taps;
}

}  // namespace similis
