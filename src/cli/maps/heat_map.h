// SPDX-License-Identifier: Apache-2.0
// Draws a map of scores as a picture; brighter is worse.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "similis/tensor.hpp"
#include "src/cli/maps/lettering.h"
#include "src/cli/metrics/map_range.h"
#include "src/media/picture/image.h"

namespace similis::cli {

/// --map-max, --overlay and --no-legend.
struct MapStyle {
  bool fits_loss = false;              ///< the largest loss of each map is brightest
  std::optional<double> largest_loss;  ///< this loss is brightest; empty: as the metric says
  bool is_overlay = false;             ///< the map lies over the grey reference
  bool has_legend = true;
};

/// `max` as typed: a number, "auto", or empty. Throws UsageError.
MapStyle parse_map_style(const std::string& max, bool is_overlay, bool has_legend);

/// The range that the style makes of the metric's for this map.
MapRange drawn_range(const Tensor& map, const MapRange& range, const MapStyle& style);

/// The parts of a drawing besides the map's values.
struct MapFrame {
  MapRange range;
  std::string title;  ///< first line of the legend ("ssim 0.95"); empty: no legend
  Tensor under = {};  ///< the grey picture below the colours, [1,1,H,W] in f32, 0 to 1; or none
  std::vector<Label> labels = {};
};

/// The map's mean over channels in the colours of color_scale.h, one pixel a value, in the upper
/// left corner; below it the legend: title, unit, and the scale with its values. Letters are at
/// least 1.5 % as high as the map is wide. A pixel that is NaN, as those outside of a volume's
/// slices, is grey. Over a grey picture the colours are as strong as the loss.
/// map: f32 or f64, [1,C,H,W], dense, on the CPU.
media::Image heat_map(const Tensor& map, const MapFrame& frame);

}  // namespace similis::cli
