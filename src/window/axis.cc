// SPDX-License-Identifier: Apache-2.0
#include "src/window/axis.h"

#include <algorithm>
#include <cstddef>

namespace similis {

Axis::Axis(
    std::int64_t extent, const std::vector<double>& taps, Padding padding, const Interval& counted)
    : extent_(extent),
      radius_(static_cast<std::int64_t>(taps.size() / 2)),
      taps_(taps),
      padding_(padding) {
  const std::int64_t cut = padding == Padding::valid ? radius_ : 0;
  centres_ = {std::max(cut, counted.first), std::min(extent - cut, counted.last)};
}

double Axis::weight(std::int64_t centre) const {
  if (padding_ != Padding::renormalize) return 1;
  if (centre >= radius_ && centre < extent_ - radius_) return 1;
  double sum = 0;
  for (std::int64_t k = 0; k < 2 * radius_ + 1; ++k) {
    if (source(centre - radius_ + k) != kOutside) sum += taps_[static_cast<std::size_t>(k)];
  }
  return sum;
}

std::vector<double> Axis::transposed_taps(std::int64_t pixel) const {
  std::vector<double> result(taps_.size(), 0);
  for (std::int64_t k = 0; k < 2 * radius_ + 1; ++k) {
    const std::int64_t centre = pixel - radius_ + k;
    if (centre < first_centre() || centre >= last_centre()) continue;
    double& tap = result[static_cast<std::size_t>(k)];
    if (!folds()) {
      tap = taps_[static_cast<std::size_t>(2 * radius_ - k)];
      continue;
    }
    for (std::int64_t j = 0; j < 2 * radius_ + 1; ++j) {
      if (source(centre - radius_ + j) == pixel) tap += taps_[static_cast<std::size_t>(j)];
    }
  }
  return result;
}

}  // namespace similis
