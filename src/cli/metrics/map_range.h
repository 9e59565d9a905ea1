// SPDX-License-Identifier: Apache-2.0
// The values of a metric's map, and how they are drawn.
#pragma once

#include <cstdint>

namespace similis::cli {

/// The meaning of MapRange::worst: a value of the map, or of maps of errors a share of the samples'
/// range, so that 8 and 16 bits look alike.
enum class MapScale : std::uint8_t { fixed, of_range, of_squared_range };

/// `best` is the value where the frames are equal; `worst` and what lies beyond it is brightest.
struct MapRange {
  double best = 1;
  double worst = 0;
  const char* unit = "";  ///< a line of the legend
  MapScale scale = MapScale::fixed;
};

/// The range for samples of this data range: for maps of errors, a fifth of it, rounded down to one
/// digit (50 of 255), or the square of that.
MapRange for_data_range(const MapRange& range, double data_range);

}  // namespace similis::cli
