// SPDX-License-Identifier: Apache-2.0
// Compares colour spaces and converts pictures between them, with lcms2.
#pragma once

#include <string>
#include <vector>

#include "similis/execution.hpp"
#include "src/media/picture/image.h"

namespace similis::media {

/// True if code values mean the same colours in both: they are equal, or each of a set of greys,
/// primaries and mixtures keeps its code values within 1/1024 of their range on the way from a to
/// b. So the many profiles that spell out sRGB are alike, and alike to no profile at all; so is
/// gAMA 0.45455, which writers of sRGB put there, with sRGB's cHRM or none. Two that are not equal,
/// one of them unusable by convert_color, are not the same.
bool same_color(const ColorSpace& a, const ColorSpace& b);

/// A short name for messages: "sRGB", "ICC profile Display P3", "BT.2020 PQ", "gamma 0.5".
std::string describe(const ColorSpace& color);

/// The image with its colours expressed in `target`: relative colorimetric, in float, rounded to
/// nearest, what lies outside the target's gamut clipped. Alpha, size and bit_depth stay. A grey
/// image stays grey unless its profile or the target's is for RGB: then it comes back as RGB.
/// Transfer functions are H.273's: BT.709's is the inverse of the camera's curve.
/// Throws InvalidArgument, naming the image as `name`, if a profile is damaged or for neither grey
/// nor RGB, if the image has colour and the target is a grey profile, if code points are unknown,
/// or if one of the two is PQ or HLG and they are not equal: that conversion needs a choice of
/// brightness, which no profile makes.
Image convert_color(const Image& image, const ColorSpace& target, const std::string& name);

/// Encoded samples of `channels` 1 or 3, interleaved, as linear light with sRGB's primaries. The
/// number of channels stays, except for a grey picture with a profile for RGB, which gets 3.
/// Relative colorimetric, in float, nothing clipped. Throws InvalidArgument, naming the picture, as
/// convert_color() does.
struct LinearLight {
  int channels = 3;
  std::vector<float> samples;
};
LinearLight linear_light(const ColorSpace& color, int channels, const std::vector<float>& encoded,
    const std::string& name, const Execution& exec);

}  // namespace similis::media
