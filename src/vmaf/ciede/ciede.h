// SPDX-License-Identifier: Apache-2.0
// CIEDE2000, the difference of colours, of video in limited range with BT.709's matrix: the mean
// over a frame's pixels, with libvmaf's weights and its mean hue, which is not that of the
// standard. Source: Sharma, Wu and Dalal, Color Research and Application 30(1), 2005; Yang et al.,
// "A new objective quality metric", 2012, for the weights.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "similis/execution.hpp"
#include "src/vmaf/plane.h"

namespace similis::vmaf_internal {

/// Y, Cb and Cr; chroma has one sample for 2^shift luma samples in a row and in a column.
struct ColorPlanes {
  std::array<Plane, 3> planes;
  int column_shift = 0, row_shift = 0;
};

/// The mean difference of the pixels, by the C library's functions.
double reference_ciede(const ColorPlanes& reference, const ColorPlanes& distorted);

/// The same to about 1e-9 of it, on exec's threads: the same bits on every vector target.
double ciede_cpu(const ColorPlanes& reference, const ColorPlanes& distorted, const Execution& exec);

/// libvmaf's score of a mean difference; infinite if there is none.
inline double ciede_score(double mean) { return 45 - 20 * std::log10(mean); }

/// Weights of lightness, chroma and hue.
constexpr float kCiedeLightness = 0.65f, kCiedeChroma = 1, kCiedeHue = 4;

/// R'G'B' of Y', and of Cb and Cr, which lie around 0.
constexpr double kCiedeRedOfCr = 1.28033, kCiedeGreenOfCb = -0.21482, kCiedeGreenOfCr = -0.38059,
                 kCiedeBlueOfCb = 2.12798;
/// XYZ of linear sRGB, of white D65 each.
constexpr std::array<std::array<double, 3>, 3> kCiedeXyz = {
    {{0.4124564390896921 / 0.95047, 0.357576077643909 / 0.95047, 0.18043748326639894 / 0.95047},
        {0.21267285140562248, 0.715152155287818, 0.07217499330655958},
        {0.019333895582329317 / 1.08883, 0.119192025881303 / 1.08883,
            0.9503040785363677 / 1.08883}}};
/// Above it light is a power of the code value; and XYZ's cube root is taken.
constexpr double kCiedeLinearTo = 10.0 / 255, kCiedeCubeFrom = 216.0 / 24389;
constexpr double kCiedeSlope = 24389.0 / 27;

}  // namespace similis::vmaf_internal
