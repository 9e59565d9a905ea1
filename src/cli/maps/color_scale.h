// SPDX-License-Identifier: Apache-2.0
// Maps values of a heat map to colours that a person can order without a legend: no loss is dark,
// the worst is bright, and lightness grows evenly between.
#pragma once

#include <array>
#include <cstdint>

#include "src/cli/metrics/map_range.h"

namespace similis::cli {

using Rgb = std::array<std::uint8_t, 3>;

/// The position of `value` between best (0) and worst (1), clamped. It is the square root of the
/// loss, because most pixels of a good picture lose a few hundredths: an SSIM of 0.99 is at 0.1,
/// 0.9 at 0.32, 0.5 at 0.71. The scale is the same for every picture, so that maps can be compared.
double scale_position(double value, const MapRange& range);

/// The colour at a position from 0 to 1.
Rgb scale_color(double position);

}  // namespace similis::cli
