// SPDX-License-Identifier: Apache-2.0
// Colour spaces: whether two are the same, and pictures taken from one to another, by lcms2.
#pragma once

#include <string>

#include "src/media/image.h"

namespace similis::media {

/// Whether code values mean the same colours in both: every colour of a set of greys, primaries and
/// mixtures keeps its code values within 1/1024 of their range on the way from a to b. So the many
/// profiles that spell out sRGB are alike, and alike to no profile at all; so is gAMA 0.45455,
/// which writers of sRGB put there, with or without sRGB's cHRM. Throws InvalidArgument if one
/// cannot be used, as convert_color does.
bool same_color(const ColorSpace& a, const ColorSpace& b);

/// A few words for people: "sRGB", "ICC profile Display P3", "BT.2020 PQ", "gamma 0.45455".
std::string describe(const ColorSpace& color);

/// The image with its colours expressed in `target`: relative colorimetric, in float, rounded to
/// nearest, what lies outside the target's gamut clipped. Alpha, size and bit_depth stay. A grey
/// image stays grey unless its profile or the target's is for RGB, where it comes back as RGB.
/// Throws InvalidArgument, naming `name`, if a profile is damaged or for neither grey nor RGB, if
/// the image has colour and the target is a grey profile, or if just one of the two is PQ or HLG or
/// they differ: that takes a choice of brightness that no profile makes.
Image convert_color(const Image& image, const ColorSpace& target, const std::string& name);

}  // namespace similis::media
