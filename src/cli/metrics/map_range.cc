// SPDX-License-Identifier: Apache-2.0
#include "src/cli/metrics/map_range.h"

#include <cmath>

namespace similis::cli {
namespace {

constexpr double kShare = 0.2;  // of the data range; larger errors are rare and all look bright

double rounded_down_to_a_digit(double value) {
  constexpr double kRounding = 1e-9;  // 0.2 / 0.1 may come out below 2
  const double unit = std::pow(10, std::floor(std::log10(value)));
  return std::floor(value / unit + kRounding) * unit;
}

}  // namespace

MapRange for_data_range(const MapRange& range, double data_range) {
  if (range.scale == MapScale::fixed) return range;
  MapRange scaled = range;
  const bool has_range = data_range > 0 && std::isfinite(data_range);
  scaled.worst = rounded_down_to_a_digit(kShare * (has_range ? data_range : 1));
  if (range.scale == MapScale::of_squared_range) scaled.worst *= scaled.worst;
  return scaled;
}

}  // namespace similis::cli
