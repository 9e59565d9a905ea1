// SPDX-License-Identifier: Apache-2.0
// Draws a map of scores as a picture; brighter is worse.
#pragma once

#include <string>

#include "similis/tensor.hpp"
#include "src/cli/metrics/map_range.h"
#include "src/media/picture/image.h"

namespace similis::cli {

/// The map's mean over channels in the colours of color_scale.h, one pixel a value, in the upper
/// left corner; below it the scale with its values and `title` ("ssim, mean 0.95").
/// A pixel that is NaN, as those outside of a volume's slices, is grey.
/// map: f32 or f64, [1,C,H,W], dense, on the CPU.
media::Image heat_map(const Tensor& map, const MapRange& range, const std::string& title);

}  // namespace similis::cli
