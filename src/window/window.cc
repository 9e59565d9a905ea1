// SPDX-License-Identifier: Apache-2.0
#include "src/window/window.h"

#include <cmath>
#include <cstddef>

namespace similis {

std::vector<double> gaussian_taps(int window_size, double sigma) {
  const int radius = window_size / 2;
  std::vector<double> taps;
  double sum = 0;
  for (int i = -radius; i <= radius; ++i) {
    taps.push_back(std::exp(-(i / sigma) * (i / sigma) / 2));
    sum += taps.back();
  }
  for (double& tap : taps) tap /= sum;
  return taps;
}

std::vector<float> taps_in_f32(const std::vector<double>& taps) {
  std::vector<float> result;
  double rest = 1;
  for (const double tap : taps) {
    const double rounded = std::round(tap * 0x1p24) * 0x1p-24;
    result.push_back(static_cast<float>(rounded));
    rest -= rounded;
  }
  result[result.size() / 2] += static_cast<float>(rest);
  return result;
}

}  // namespace similis
